#!/usr/bin/env python3
"""Makes harmony.json.gz: random chat requests, and what vLLM makes of each for gpt-oss; and
harmony_tokenizer.json.gz, the part of gpt-oss's tokenizer that gives their ids.

    harmony.py bodies SEED COUNT ODD > bodies.jsonl
    harmony.py render < bodies.jsonl > new.jsonl      # once with each release of vLLM
    harmony.py pack bodies.jsonl new.jsonl old.jsonl tokenizer.json

render needs vLLM: its own request model, its own mapping of messages and the library that
it renders with are called, but no engine is started. README.md says of which releases.
"""

import copy
import gzip
import hashlib
import json
import os
import random
import struct
import sys

DATE = "2026-12-01"

TEXTS = [
    "weather", "the", "City name", "celsius", "x", "naïve café", "数据库查询", "🙂👩‍👩‍👧", "é\u0301", "foo_bar", "1234567",
    "https://a.b/c?d=e", "  two  spaces", "\ttab", "a\nb", "\r\nwin\r\n", "\n\n", "don't", "I'LL", "'s", "ﬁ", "\u200b", "١٢٣",
    "{\"a\": 1}", "\\", "\"quoted\"", "// comment", "", "null", "x if y else z", "\u2028", "\x7f", "ǅ", "a" * 70,
    # What is written like a special token, and what nearly is.
    "<|", "|>", "<|end|>", "<|start|>assistant", "<|channel|>final<|message|>", "<|x y|>", "<|fim_prefix|>", "<|endoftext|>",
    "end|>", "<|en", "d|>", "<|_a|>", "<|1|>", "<<|call|>>", "<|reserved_200000|>",
]
NAMES = ["f", "get_weather", "lookup.v2", "search-web", "a1", "functions.x", "Long_name_with_many_parts", "python", "browser.search"]
NUMBERS = [0, 1, -1, 10, 3.5, 1.0, 0.1, -0.0, 1e16, 1e15, 1e-5, 1e-4, 1.5e300, 2**53, 2**63 - 1, 2**63, -2**63, 12345.678, 1e2, 0.30000000000000004]


class Chats:
    """Random requests. What they hold is of the shapes that clients send."""

    def __init__(self, seed):
        self.r = random.Random(seed)

    def chance(self, p):
        return self.r.random() < p

    def text(self, most=6):
        if self.chance(0.05):
            return self.r.choice(["", " ", "\n"])
        return self.r.choice(["", " ", " ", "\n"]).join(self.r.choice(TEXTS) for _ in range(self.r.randint(1, most)))

    def value(self, depth=0):
        k = self.r.random()
        if k < 0.25:
            return self.text(2)
        if k < 0.5:
            return self.r.choice(NUMBERS)
        if k < 0.7:
            return self.r.choice([True, False, None])
        if depth > 2:
            return 1
        if k < 0.85:
            return [self.value(depth + 1) for _ in range(self.r.randint(0, 3))]
        return {self.text(1): self.value(depth + 1) for _ in range(self.r.randint(0, 3))}

    def schema(self, depth=0):
        s = {}
        k = self.r.random()
        if k < 0.15 and depth < 4:
            s["oneOf"] = [self.schema(depth + 1) for _ in range(self.r.randint(0, 3))]
            if self.chance(0.2):
                s["oneOf"] = self.r.choice([None, "x", {}])
        elif k < 0.25:
            s["type"] = self.r.choice([["string", "null"], ["integer", "number"], [], ["object", "array"], [1, "string"]])
        elif k < 0.5 and depth < 4:
            s["type"] = "object"
        elif k < 0.6 and depth < 4:
            s["type"] = "array"
        elif k < 0.9:
            s["type"] = self.r.choice(["string", "string", "string", "number", "integer", "boolean", "null", "any"])
        if self.chance(0.05):
            s["type"] = self.r.choice([None, 5])
        if s.get("type") == "object" or self.chance(0.05):
            self.members(s, depth)
        if (s.get("type") == "array" or self.chance(0.05)) and self.chance(0.85) and depth < 5:
            s["items"] = self.schema(depth + 1)
        self.remarks(s)
        items = list(s.items())
        self.r.shuffle(items)
        return dict(items)

    def members(self, s, depth):
        if self.chance(0.9):
            s["properties"] = {
                self.r.choice(["a", "b", "city", "unit", "x y", "ünï", "n-1", "<|end|>"]) + self.r.choice(["", "2"]): self.schema(depth + 1)
                for _ in range(self.r.randint(0, 4))
            }
        if self.chance(0.05):
            s["properties"] = self.r.choice([None, [], "x", {"q": None}, {"q": "str"}, {"q": True}])
        if self.chance(0.6):
            names = s["properties"] if isinstance(s.get("properties"), dict) else ["a"]
            s["required"] = [n for n in names if self.chance(0.5)] + self.r.choice([[], [1], [None]])

    def remarks(self, s):
        if self.chance(0.35):
            s["description"] = self.text(5)
        if self.chance(0.05):
            s["description"] = self.r.choice([None, 5])
        if self.chance(0.15):
            s["title"] = self.text(2)
        if self.chance(0.2):
            s["enum"] = self.r.choice([["celsius", "fahrenheit"], ["a\"b", "c"], [1, 2], [], [self.text(2)], ["x", None, 1], None, "s"])
        if self.chance(0.25):
            s["default"] = self.value()
        if self.chance(0.1):
            s["nullable"] = self.r.choice([True, False, "x", None])
        if self.chance(0.15):
            s["examples"] = self.r.choice([["one", "two"], [], [1, "x"], [self.text(3)], None, "x"])
        if self.chance(0.1):
            s[self.r.choice(["minimum", "format", "$ref", "anyOf", "allOf"])] = self.r.choice([1, "date", [{"type": "string"}]])

    def tool(self):
        f = {"name": self.r.choice(NAMES)}
        if self.chance(0.9):
            f["description"] = self.text(8)
        if self.chance(0.7):
            rest = {k: v for k, v in self.schema().items() if k != "type"}
            f["parameters"] = {"type": "object", **rest, "properties": {self.r.choice("abcdefg"): self.schema(1) for _ in range(self.r.randint(0, 4))}}
        elif self.chance(0.6):
            f["parameters"] = self.r.choice([None, {}, self.schema()])
        if self.chance(0.2):
            f["strict"] = self.r.choice([True, False, None])
        return {"type": "function", "function": f} if self.chance(0.95) else {"function": f}

    def content(self):
        if self.chance(0.75):
            return self.text(20)
        return [{"type": "text", "text": self.text(6)} for _ in range(self.r.choice([0, 1, 1, 2, 2, 3, 4]))]

    def call(self, ids):
        ids.append(f"call_{self.r.randint(0, 999)}")
        arguments = self.r.choice(["{}", "", '{"city": "Paris"}', '{"a":1.0,"b":[1,2]}', "not json", self.text(4)])
        return {"id": ids[-1], "type": "function", "function": {"name": self.r.choice(NAMES), "arguments": arguments}}

    def instructions(self):
        return {"role": self.r.choice(["system", "developer"]), "content": self.content()}

    def answer(self, ids):
        m = {"role": "assistant"}
        if self.chance(0.9):
            m["content"] = None if self.chance(0.25) else self.content()
        if self.chance(0.4):
            m[self.r.choice(["reasoning", "reasoning", "reasoning_content"])] = self.r.choice([self.text(8), self.text(8), "", None])
        if self.chance(0.4):
            m["tool_calls"] = [self.call(ids) for _ in range(self.r.randint(0, 3))]
        if self.chance(0.03):
            m["tool_calls"] = None
        return m

    def turn(self, ids):
        k = self.r.random()
        if k < 0.4:
            m = {"role": "user", "content": self.content()}
        elif k < 0.75:
            return self.answer(ids)
        elif k < 0.95:
            m = {"role": "tool", "content": self.content(), "tool_call_id": self.r.choice(ids) if ids and self.chance(0.9) else "none"}
        else:
            return self.instructions()
        if self.chance(0.1):
            m["name"] = "bob"
        return m

    def body(self):
        ids = []
        messages = [self.instructions()] if self.chance(0.6) else []
        if self.chance(0.2):
            messages.append(self.instructions())
        b = {"messages": messages + [self.turn(ids) for _ in range(self.r.randint(1, 6))]}
        if self.chance(0.55):
            b["tools"] = [self.tool() for _ in range(self.r.randint(1, 4))]
            if self.chance(0.2):
                b["tool_choice"] = self.r.choice(["none", "auto", "required"])
        if self.chance(0.4):
            b["reasoning_effort"] = self.r.choice(["low", "medium", "high", "low", "high", None, "none", "minimal", "xhigh"])
        if self.chance(0.1):
            b["chat_template_kwargs"] = {"enable_thinking": False, "reasoning_effort": "high"}
        if self.chance(0.1):
            b["include_reasoning"] = self.r.choice([True, False])
        if self.chance(0.05):
            b.update(add_generation_prompt=False, continue_final_message=True)
        if self.chance(0.05):
            b["response_format"] = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
        return b

    def odd(self):
        """A request with members of shapes that hardly any client sends."""
        b = copy.deepcopy(self.body())
        for _ in range(self.r.randint(1, 2)):
            m = self.r.choice(b["messages"])
            key = self.r.choice(ODD_MEMBERS)
            if self.chance(0.15):
                m.pop(key, None)
            elif key == "role":
                m[key] = self.r.choice(["user", "assistant", "system", "developer", "tool", "function", "latest_reminder", "User", ""])
            else:
                m[key] = copy.deepcopy(self.r.choice(ODD))
        return b


ODD_MEMBERS = [
    "content", "content", "role", "name", "tool_calls", "tool_call_id", "reasoning", "reasoning_content", "author", "channel", "recipient",
    "content_type", "refusal", "audio", "function_call", "task", "tools", "cache_control",
]
ODD = [
    None, "", 0, -1, 1.5, True, [], {}, "x", ["x"], [None], {"a": 1},
    [{"type": "text", "text": "y"}], [{"type": "text"}], [{"type": "text", "text": None}], [{"type": "text", "text": 3}], [{"text": "z"}],
    [{"type": "input_text", "text": "i"}], [{"type": "output_text", "text": "o"}], [{"type": "refusal", "refusal": "no"}],
    [{"type": "thinking", "thinking": "t"}], [{"type": "image_url", "image_url": {"url": "http://x/y.png"}}],
    [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}], [{"type": "tool_reference", "name": "f"}],
    [{"id": "1", "type": "custom", "custom": {"name": "f", "input": "x"}}],
    [{"id": "1", "type": "function", "function": {"name": "f"}}],
    [{"id": "1", "type": "function", "function": {"name": "f", "arguments": None}}],
    [{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}],
    [{"type": "function", "function": {"name": "f", "arguments": "{}"}}],
    [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
    [{"id": "1", "type": "function", "function": {"name": "a b", "arguments": "{}"}}],
    [{"id": "1", "type": "function", "function": {"name": "<|end|>", "arguments": "{}"}}],
    [{"id": "1", "type": "function", "index": 0, "extra": 1, "function": {"name": "f", "arguments": "{}", "x": 1}}],
]


def bodies(seed, count, odd):
    chats = Chats(seed)
    for i in range(count + odd):
        print(json.dumps(chats.body() if i < count else chats.odd()))


class Renderer:
    """As much of vLLM's renderer as it asks of itself on the way of a Harmony chat."""

    supports_browsing = False
    supports_code_interpreter = False
    renderer = None
    reasoning_effort_map = None


def render():
    os.environ["VLLM_SYSTEM_START_DATE"] = DATE
    out, sys.stdout = sys.stdout, sys.stderr  # vLLM prints when it is imported
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.parser.harmony_utils import get_encoding

    try:
        from vllm.renderers.online_renderer import OnlineRenderer
    except ImportError:  # before 0.25
        from vllm.entrypoints.serve.render.serving import OpenAIServingRender as OnlineRenderer
    encoding = get_encoding()
    for line in sys.stdin:
        try:
            request = ChatCompletionRequest.model_validate(json.loads(line))
            _, prompts = OnlineRenderer._make_request_with_harmony(Renderer(), request, request.tools is not None)
            ids = list(prompts[0]["prompt_token_ids"])
            answer = {"parts": parts(encoding, ids), "ids": ids}
        except Exception as e:  # whatever it is, the request has no prompt
            answer = {"error": type(e).__name__}
        print(json.dumps(answer), file=out)


FIRST_SPECIAL = 199998


def parts(encoding, ids):
    """The prompt: ids of special tokens as they are, and the text between them."""
    out, run = [], []
    for i in ids + [None]:
        if i is not None and i < FIRST_SPECIAL:
            run.append(i)
            continue
        if run:
            out.append(encoding.decode(run, errors="strict"))
        run = []
        if i is not None:
            out.append(i)
    return out


def digest(ids):
    return hashlib.sha256(struct.pack(f"<{len(ids)}I", *ids)).hexdigest()[:16]


# The ids of the text that tells whether a model has this vocabulary (Vocabulary in
# internal/core/chat).
SAMPLE = [
    200006, 173781, 316, 28, 44580, 3700, 200005, 12606, 815, 5701, 200008, 8858, 77, 9954, 3056, 108502, 22376, 30476, 220, 7633, 19354, 22,
    4128, 8734, 31233, 46865, 220, 1215, 659, 580, 88, 10924, 160433, 52622, 121, 145259, 200012, 200007,
]


def pack(requests, new, old, tokenizer):
    cases, used = [], set(SAMPLE)
    for body, a, b in zip(*(open(p, encoding="utf-8") for p in (requests, new, old)), strict=True):
        case = {"body": json.loads(body), "new": json.loads(a), "old": json.loads(b)}
        for answer in case["new"], case["old"]:
            if "ids" in answer:
                used.update(answer["ids"])
                answer["ids"] = digest(answer["ids"])
        if case["old"] == case["new"]:
            del case["old"]
        cases.append(case)
    write("harmony.json.gz", "[\n" + ",\n".join(compact(c) for c in cases) + "\n]\n")
    with open(tokenizer, encoding="utf-8") as f:
        write("harmony_tokenizer.json.gz", compact(part(json.load(f), used)))


def compact(v):
    return json.dumps(v, ensure_ascii=False, separators=(",", ":"))


def write(name, text):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name), "wb") as f:
        f.write(gzip.compress(text.encode(), 9, mtime=0))


def part(tokenizer, used):
    """The tokenizer with the entries of these ids, and with those that they are merged from.

    A text has the same ids by it as by the whole one if the whole one's are among these: a
    merge is never undone, so that all merges made in the text are ones made in its ids.
    """
    model = tokenizer["model"]
    merges = {tuple(m.split(" ") if isinstance(m, str) else m): rank for rank, m in enumerate(model["merges"])}
    entries = {i: e for e, i in model["vocab"].items()}
    special = {a["id"]: a["content"] for a in tokenizer["added_tokens"]}
    kept, made = {e for e in model["vocab"] if len(e) == 1}, set()
    for i in used - set(special):
        kept.add(entries[i])
        symbols = list(entries[i])
        while pairs := [(merges[p], k, p) for k, p in enumerate(zip(symbols, symbols[1:])) if p in merges]:
            _, k, pair = min(pairs)
            symbols[k : k + 2] = ["".join(pair)]
            kept.add(symbols[k])
            made.add(pair)
    model["vocab"] = {e: model["vocab"][e] for e in sorted(kept, key=model["vocab"].get)} | {e: i for i, e in special.items()}
    model["merges"] = [list(m) for m in sorted(made, key=merges.get)]
    return tokenizer


def main(verb="", *args):
    if verb == "bodies":
        bodies(*map(int, args))
    elif verb == "render":
        render()
    elif verb == "pack":
        pack(*args)
    else:
        sys.exit(__doc__)


main(*sys.argv[1:])
