"""Captures what vLLM's render server makes of requests to /v1/messages and /v1/responses.

    vllm launch render ../models/tiny-llama --chat-template T.jinja --served-model-name m --port P ...
    python capture.py chat-forms.json.gz http://127.0.0.1:P NAME T.jinja ../models/tiny-llama/tokenizer.json [text]

Puts the template NAME into the file, with what each of the cases becomes: its hand-written requests
and random ones of a fixed seed. Texts are stored as digests, and as text only where the last
argument says so: they repeat the template.
"""
import gzip, hashlib, os
import json, random, sys, urllib.error, urllib.request

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
TOOL = {"name": "get_weather", "description": "Weather <now> & 'later' für Städte",
        "input_schema": {"properties": {"zip": {"type": "string"}, "city": {"type": "string", "default": None}}, "required": ["zip"]}}
USE = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"zip": "é", "n": 1.0, "big": 123456789012345678901234567890, "e": 1e20, "x": [1, None, True]}}
U = {"role": "user", "content": "Hi"}
BILL = "x-anthropic-billing-header: cc_version=1; cch=abc"

def use(**k): return {**USE, **k}
def result(content="20 C", **k): return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **k}
def text(s="a"): return {"type": "text", "text": s}
def user(*blocks): return {"role": "user", "content": list(blocks)}
def assistant(*blocks): return {"role": "assistant", "content": list(blocks)}
def system(*blocks): return {"role": "system", "content": list(blocks)}
def talk(*blocks): return [U, assistant(*blocks), U]

MESSAGES = {
    "plain": dict(messages=[U]),
    "system": dict(system="Be brief.", messages=[U]),
    "system empty": dict(system="", messages=[U]),
    "system null": dict(system=None, messages=[U]),
    "system blocks": dict(system=[text("One. "), text(""), text("Two.")], messages=[U]),
    "system blocks cache_control": dict(system=[{**text("One."), "cache_control": {"type": "ephemeral"}}], messages=[U]),
    "system blocks billing": dict(system=[text(BILL), text("Two.")], messages=[U]),
    "system billing text": dict(system=BILL + "\nTwo.", messages=[U]),
    "system only billing": dict(system=[text(BILL)], messages=[U]),
    "system number": dict(system=5, messages=[U]),
    "no messages": dict(messages=[]),
    "messages null": dict(messages=None),
    "role tool": dict(messages=[{"role": "tool", "content": "x"}]),
    "content null": dict(messages=[{"role": "user", "content": None}]),
    "content missing": dict(messages=[{"role": "user"}]),
    "content empty text": dict(messages=[{"role": "user", "content": ""}, U]),
    "content empty list": dict(messages=[user(), U]),
    "blocks": dict(messages=[user(text("a"), text("b"))]),
    "one block": dict(messages=[user(text(" a "))]),
    "empty block among": dict(messages=[user(text("a"), text(""), text("b"))]),
    "only empty block": dict(messages=[user(text("")), U]),
    "block text null": dict(messages=[user({"type": "text", "text": None}, text("b"))]),
    "block text number": dict(messages=[user({"type": "text", "text": 3})]),
    "block unknown": dict(messages=[user({"type": "video"})]),
    "block is text": dict(messages=[user("hi")]),
    "block document": dict(messages=[user({"type": "document", "source": {"type": "text", "data": "x"}})]),
    "unicode": dict(messages=[user(text("Ünï \u2028 😀\u0000"))]),
    "turns": dict(system="S", messages=[U, {"role": "assistant", "content": "Yes."}, U]),
    "prefill": dict(messages=[U, {"role": "assistant", "content": "The answer is"}]),
    "assistant empty list": dict(messages=[U, assistant(), U]),
    "assistant empty text": dict(messages=[U, assistant(text("")), U]),
    "thinking": dict(messages=talk({"type": "thinking", "thinking": "Hmm.", "signature": "s"}, text("Yes."))),
    "thinking two": dict(messages=talk({"type": "thinking", "thinking": "A"}, {"type": "thinking", "thinking": "B"}, text("Yes."))),
    "thinking only": dict(messages=talk({"type": "thinking", "thinking": "Hmm."})),
    "thinking empty": dict(messages=talk({"type": "thinking", "thinking": ""}, text("Yes."))),
    "redacted": dict(messages=talk({"type": "redacted_thinking", "data": "x"}, text("Yes."))),
    "tools": dict(tools=[TOOL], messages=[U]),
    "tools two": dict(tools=[TOOL, {"name": "b", "input_schema": {"type": "object", "z": 1, "a": 2}}], messages=[U]),
    "tools empty": dict(tools=[], messages=[U]),
    "tools null": dict(tools=None, messages=[U]),
    "tools strict": dict(tools=[{**TOOL, "strict": True, "defer_loading": True}], messages=[U]),
    "tool without schema": dict(tools=[{"name": "web_search", "type": "web_search_20250305"}], messages=[U]),
    "tool custom type": dict(tools=[{**TOOL, "type": "custom", "cache_control": {"type": "ephemeral"}}], messages=[U]),
    "tool without name": dict(tools=[{"input_schema": {}}], messages=[U]),
    "choice auto": dict(tools=[TOOL], tool_choice={"type": "auto"}, messages=[U]),
    "choice any": dict(tools=[TOOL], tool_choice={"type": "any"}, messages=[U]),
    "choice none": dict(tools=[TOOL], tool_choice={"type": "none"}, messages=[U]),
    "choice tool": dict(tools=[TOOL], tool_choice={"type": "tool", "name": "get_weather"}, messages=[U]),
    "choice nameless": dict(tools=[TOOL], tool_choice={"type": "tool"}, messages=[U]),
    "choice unknown": dict(tools=[TOOL], tool_choice={"type": "some"}, messages=[U]),
    "tool use": dict(tools=[TOOL], messages=[U, assistant(text("Let me see."), USE), user(result())]),
    "tool use alone": dict(tools=[TOOL], messages=[U, assistant(USE), user(result(), text("And now?"))]),
    "tool use two": dict(tools=[TOOL], messages=[U, assistant(USE, use(id="toolu_2", input={})), user(result(), result("x", tool_use_id="toolu_2"))]),
    "tool use text order": dict(messages=[U, assistant(USE), user(text("before"), result(), text("after"))]),
    "tool use input null": dict(messages=[U, assistant(use(input=None)), user(result())]),
    "tool use input text": dict(messages=[U, assistant(use(input="x")), user(result())]),
    "tool use thinking": dict(messages=[U, assistant({"type": "thinking", "thinking": "T"}, USE), user(result())]),
    "tool use nameless": dict(messages=[U, assistant({"type": "tool_use", "id": "t"}), user(result())]),
    "result list": dict(messages=[U, assistant(USE), user(result([text("a"), text("b")]))]),
    "result empty": dict(messages=[U, assistant(USE), user(result(""))]),
    "result null": dict(messages=[U, assistant(USE), user(result(None))]),
    "result empty list": dict(messages=[U, assistant(USE), user(result([]))]),
    "result error": dict(messages=[U, assistant(USE), user(result("boom", is_error=True))]),
    "result reference": dict(messages=[U, assistant(USE), user(result([{"type": "tool_reference", "tool_name": "b"}, text("x")]))]),
    "result unknown item": dict(messages=[U, assistant(USE), user(result([{"type": "search_result", "title": "x"}, text("y")]))]),
    "result no id": dict(messages=[U, assistant(USE), user({"type": "tool_result", "content": "x"})]),
    "result of assistant": dict(messages=[U, assistant(result("x")), U]),
    "result number": dict(messages=[U, assistant(USE), user(result(5))]),
    "inline system": dict(messages=[U, system(text("a"), text("b")), U]),
    "inline system text": dict(system="S", messages=[U, {"role": "system", "content": "Remember."}, U]),
    "inline system billing": dict(messages=[U, {"role": "system", "content": BILL + "\nx"}, system(text(BILL), text("y")), U]),
    "inline system empty": dict(messages=[U, {"role": "system", "content": ""}, U]),
    "only inline system": dict(messages=[{"role": "system", "content": "Alone."}]),
    "effort": dict(output_config={"effort": "low"}, messages=[U]),
    "effort max": dict(output_config={"effort": "max"}, messages=[U]),
    "effort unknown": dict(output_config={"effort": "some"}, messages=[U]),
    "thinking disabled": dict(thinking={"type": "disabled"}, messages=[U]),
    "thinking disabled effort": dict(thinking={"type": "disabled"}, output_config={"effort": "high"}, messages=[U]),
    "thinking enabled": dict(thinking={"type": "enabled", "budget_tokens": 1024}, max_tokens=2048, messages=[U]),
    "thinking adaptive": dict(thinking={"type": "adaptive"}, output_config={"effort": "medium"}, messages=[U]),
    "thinking unknown": dict(thinking={"type": "x"}, messages=[U]),
    "kwargs": dict(chat_template_kwargs={"enable_thinking": False}, messages=[U]),
    "kwargs effort": dict(chat_template_kwargs={"enable_thinking": False}, output_config={"effort": "high"}, messages=[U]),
    "tool added": dict(tools=[{**TOOL, "defer_loading": True}], messages=[U, system({"type": "tool_addition", "tool": {"type": "tool_reference", "name": "get_weather"}}), U]),
    "tool removed": dict(tools=[TOOL, {"name": "b", "input_schema": {}}], messages=[U, system({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "get_weather"}}), U]),
    "tool removed and added": dict(tools=[TOOL], messages=[U, system({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "get_weather"}}, {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "get_weather"}}), U]),
    "tool defined": dict(messages=[U, system(text("new"), {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": "c", "input_schema": {}}}}), U]),
    "tool added unknown": dict(messages=[U, system({"type": "tool_addition", "tool": {"type": "tool_reference", "name": "zz"}}), U]),
    "tool change by user": dict(messages=[user({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "get_weather"}})]),
    "all tools removed": dict(tools=[TOOL], messages=[U, system({"type": "tool_removal", "tool": {"type": "tool_reference", "name": "get_weather"}}), U]),
    "duplicate tools changed": dict(tools=[TOOL, {**TOOL, "description": "second"}, {"name": "b", "input_schema": {}}], messages=[U, system({"type": "tool_addition", "tool": {"type": "tool_reference", "name": "b"}}), U]),
}

FUNCTION = {"type": "function", "name": "get_weather", "description": "Weather <now> & 'later'", "strict": True,
            "parameters": {"type": "object", "properties": {"zip": {"type": "string"}, "city": {}}, "required": ["zip"]}}
CALL = {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"zip": "é", "n": 1.0}'}
OUT = {"type": "function_call_output", "call_id": "call_1", "output": "20 C"}
def msg(role, content, **k): return {"role": role, "content": content, **k}
def itext(s): return {"type": "input_text", "text": s}
def otext(s): return {"type": "output_text", "text": s}
def answer(*parts, **k): return {"type": "message", "role": "assistant", "content": list(parts), **k}
def thought(content=None, summary=(), **k):
    d = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": s} for s in summary], **k}
    if content is not None: d["content"] = [{"type": "reasoning_text", "text": s} for s in content]
    return d

RESPONSES = {
    "text": dict(input="Hi"),
    "empty text": dict(input=""),
    "instructions": dict(instructions="Be brief.", input="Hi"),
    "instructions empty": dict(instructions="", input="Hi"),
    "instructions number": dict(instructions=5, input="Hi"),
    "items": dict(input=[msg("user", "Hi")]),
    "items typed": dict(input=[msg("user", "Hi", type="message")]),
    "no items": dict(input=[]),
    "no items with instructions": dict(instructions="S", input=[]),
    "input null": dict(input=None),
    "input number": dict(input=3),
    "item is text": dict(input=["Hi"]),
    "parts": dict(input=[msg("user", [itext("a"), itext("b")])]),
    "one part": dict(input=[msg("user", [itext("a")])]),
    "chat part": dict(input=[msg("user", [text("a")])]),
    "unknown part": dict(input=[msg("user", [{"type": "video", "x": 1}])]),
    "empty parts": dict(input=[msg("user", [])]),
    "content null": dict(input=[msg("user", None)]),
    "roles": dict(input=[msg("system", "S"), msg("developer", "D"), msg("user", "U")]),
    "developer parts": dict(instructions="I", input=[msg("developer", [itext("D")]), msg("user", "U")]),
    "role tool": dict(input=[msg("tool", "x")]),
    "extra fields": dict(input=[msg("user", "Hi", name="bob", foo=1)]),
    "answer": dict(input=[msg("user", "Hi"), answer(otext("Yes.")), msg("user", "Go")]),
    "answer text": dict(input=[msg("user", "Hi"), msg("assistant", "Yes."), msg("user", "Go")]),
    "answer text typed": dict(input=[msg("user", "Hi"), msg("assistant", "Yes.", type="message"), msg("user", "Go")]),
    "answer untyped parts": dict(input=[msg("user", "Hi"), msg("assistant", [otext("Yes.")]), msg("user", "Go")]),
    "answer input parts": dict(input=[msg("user", "Hi"), answer(itext("Yes.")), msg("user", "Go")]),
    "answer two parts": dict(input=[msg("user", "Hi"), answer(otext("Yes."), otext("No.")), msg("user", "Go")]),
    "answer refusal": dict(input=[msg("user", "Hi"), answer({"type": "refusal", "refusal": "No."}), msg("user", "Go")]),
    "answer empty": dict(input=[msg("user", "Hi"), answer(), msg("user", "Go")]),
    "two answers": dict(input=[msg("user", "Hi"), answer(otext("Yes.")), answer(otext("No.")), msg("user", "Go")]),
    "answer phase": dict(input=[msg("user", "Hi"), answer(otext("Yes."), phase="commentary"), msg("user", "Go")]),
    "call": dict(tools=[FUNCTION], input=[msg("user", "Hi"), CALL, OUT]),
    "call two": dict(tools=[FUNCTION], input=[msg("user", "Hi"), CALL, {**CALL, "call_id": "call_2"}, OUT, {**OUT, "call_id": "call_2"}]),
    "answer and call": dict(tools=[FUNCTION], input=[msg("user", "Hi"), answer(otext("See.")), CALL, OUT]),
    "call and answer": dict(tools=[FUNCTION], input=[msg("user", "Hi"), CALL, answer(otext("See.")), OUT]),
    "call namespace": dict(input=[msg("user", "Hi"), {**CALL, "namespace": "ns"}, OUT]),
    "call without id": dict(input=[msg("user", "Hi"), {k: v for k, v in CALL.items() if k != "call_id"}, OUT]),
    "call bad arguments": dict(input=[msg("user", "Hi"), {**CALL, "arguments": "{x"}, OUT]),
    "call arguments object": dict(input=[msg("user", "Hi"), {**CALL, "arguments": {"a": 1}}, OUT]),
    "output parts": dict(input=[msg("user", "Hi"), CALL, {**OUT, "output": [itext("a"), itext("b")]}]),
    "output null": dict(input=[msg("user", "Hi"), CALL, {**OUT, "output": None}]),
    "output status": dict(input=[msg("user", "Hi"), CALL, {**OUT, "status": "completed", "id": "fco_1"}]),
    "custom call": dict(tools=[{"type": "custom", "name": "shell", "description": "Runs é"}],
                        input=[msg("user", "Hi"), {"type": "custom_tool_call", "call_id": "c", "name": "shell", "input": "ls \"é\"\n"}, {"type": "custom_tool_call_output", "call_id": "c", "output": "x"}]),
    "reasoning": dict(input=[msg("user", "Hi"), thought(["Hmm."]), answer(otext("Yes.")), msg("user", "Go")]),
    "reasoning summary": dict(input=[msg("user", "Hi"), thought(None, ["Sum."]), answer(otext("Yes.")), msg("user", "Go")]),
    "reasoning both": dict(input=[msg("user", "Hi"), thought(["Hmm."], ["Sum."]), answer(otext("Yes.")), msg("user", "Go")]),
    "reasoning empty": dict(input=[msg("user", "Hi"), thought(), answer(otext("Yes.")), msg("user", "Go")]),
    "reasoning two parts": dict(input=[msg("user", "Hi"), thought(["A", "B"]), msg("user", "Go")]),
    "reasoning no id": dict(input=[msg("user", "Hi"), {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "R"}]}, answer(otext("Yes.")), msg("user", "Go")]),
    "reasoning no summary": dict(input=[msg("user", "Hi"), {"type": "reasoning", "id": "r", "content": [{"type": "reasoning_text", "text": "R"}]}, msg("user", "Go")]),
    "reasoning encrypted": dict(input=[msg("user", "Hi"), thought(["A"], encrypted_content="x"), msg("user", "Go")]),
    "reasoning call": dict(tools=[FUNCTION], input=[msg("user", "Hi"), thought(["Hmm."]), CALL, OUT]),
    "answer then reasoning": dict(input=[msg("user", "Hi"), answer(otext("Yes.")), thought(["Late."]), msg("user", "Go")]),
    "continue": dict(input=[msg("user", "Hi"), answer(otext("The answer"), status="incomplete")]),
    "continue in progress": dict(input=[msg("user", "Hi"), answer(otext("The answer"), status="in_progress")]),
    "continue dict": dict(input=[msg("user", "Hi"), msg("assistant", "The answer", type="message", status="incomplete")]),
    "completed": dict(input=[msg("user", "Hi"), answer(otext("The answer"), status="completed")]),
    "item reference": dict(input=[{"type": "item_reference", "id": "x"}]),
    "web search call": dict(input=[msg("user", "Hi"), {"type": "web_search_call", "id": "w", "status": "completed", "action": {"type": "search", "query": "x"}}]),
    "tools": dict(tools=[FUNCTION], input="Hi"),
    "tools empty": dict(tools=[], input="Hi"),
    "tools null": dict(tools=None, input="Hi"),
    "tool minimal": dict(tools=[{"type": "function", "name": "f"}], input="Hi"),
    "tool extra": dict(tools=[{**FUNCTION, "foo": 1, "strict": None, "defer_loading": True}], input="Hi"),
    "tool chat form": dict(tools=[{"type": "function", "function": {"name": "f"}}], input="Hi"),
    "tool custom": dict(tools=[{"type": "custom", "name": "shell"}, FUNCTION], input="Hi"),
    "tool custom text": dict(tools=[{"type": "custom", "name": "shell", "description": "d", "format": {"type": "text"}}], input="Hi"),
    "tool custom grammar": dict(tools=[{"type": "custom", "name": "shell", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}}], input="Hi"),
    "tool namespace": dict(tools=[{"type": "namespace", "name": "ns", "description": "d", "tools": [{"type": "function", "name": "f", "description": "x", "parameters": {"type": "object"}}]}], input="Hi"),
    "tool web search": dict(tools=[{"type": "web_search"}], input="Hi"),
    "tool web search and function": dict(tools=[{"type": "web_search_preview"}, FUNCTION], input="Hi"),
    "tool unknown": dict(tools=[{"type": "nonsense"}], input="Hi"),
    "choice none": dict(tools=[FUNCTION], tool_choice="none", input="Hi"),
    "choice required": dict(tools=[FUNCTION], tool_choice="required", input="Hi"),
    "choice required no tools": dict(tool_choice="required", input="Hi"),
    "choice named": dict(tools=[FUNCTION], tool_choice={"type": "function", "name": "get_weather"}, input="Hi"),
    "choice wrong": dict(tools=[FUNCTION], tool_choice={"type": "function", "name": "zz"}, input="Hi"),
    "effort": dict(reasoning={"effort": "low"}, input="Hi"),
    "effort none": dict(reasoning={"effort": "none"}, input="Hi"),
    "effort null": dict(reasoning={"effort": None, "summary": "auto"}, input="Hi"),
    "effort unknown": dict(reasoning={"effort": "some"}, input="Hi"),
    "kwargs": dict(chat_template_kwargs={"enable_thinking": False}, reasoning={"effort": "high"}, input="Hi"),
    "prompt": dict(prompt={"id": "x"}, input="Hi"),
    "truncation auto": dict(truncation="auto", input="Hi"),
    "previous": dict(previous_response_id="resp_x", input="Hi"),
}

def some(rng, *choices): return rng.choice(choices)

def random_messages(rng):
    words = lambda: " ".join(rng.choice(["one", "zwei", "<b>", "x-anthropic", "é😀", "", "\n", "  ", "{\"a\":1}"]) for _ in range(rng.randrange(4)))
    def block(role):
        kind = rng.choice(["text"] * 4 + (["tool_result"] * 2 if role == "user" else ["tool_use"] * 2 + ["thinking"]))
        if kind == "text": return text(words())
        if kind == "thinking": return {"type": "thinking", "thinking": words(), "signature": ""}
        if kind == "tool_use": return use(id=f"t{rng.randrange(3)}", name=some(rng, "get_weather", "b"), input=some(rng, {}, None, {"b": words(), "a": [1.5, {"z": None, "y": -0.0}]}, {"n": rng.randrange(10**20)}))
        return result(some(rng, words(), [text(words()), text(words())], [], None, [{"type": "tool_reference", "tool_name": "b"}]))
    def one(role):
        return {"role": role, "content": words() if rng.random() < .3 else [block(role) for _ in range(rng.randrange(5))]}
    d = dict(messages=[one(some(rng, "user", "user", "assistant")) for _ in range(rng.randrange(1, 7))])
    if rng.random() < .2: d["messages"].insert(rng.randrange(len(d["messages"]) + 1), some(rng, {"role": "system", "content": words()}, system(text(words()), text(BILL))))
    if rng.random() < .5: d["system"] = some(rng, words(), [text(words()), text(words())], BILL + "\n" + words())
    if rng.random() < .5: d["tools"] = some(rng, [TOOL], [TOOL, {"name": "b", "input_schema": {"z": 1}}], [])
    if rng.random() < .3: d["output_config"] = {"effort": some(rng, "low", "high", "xhigh")}
    if rng.random() < .2: d["thinking"] = some(rng, {"type": "disabled"}, {"type": "adaptive"})
    return d

def random_responses(rng):
    words = lambda: " ".join(rng.choice(["one", "zwei", "<b>", "é😀", "", "\n", "{\"a\":1}"]) for _ in range(rng.randrange(4)))
    def item():
        return some(rng, msg("user", words()), msg("user", [itext(words()), itext(words())]), msg("system", words()), msg("developer", words()),
                    msg("assistant", words()), answer(otext(words())), answer(otext(words()), otext("x")), thought([words()]), thought(None, [words()]),
                    CALL, {**CALL, "arguments": some(rng, "", "{}", "[1]", "{\"a\": 1e5}")}, OUT, {**OUT, "output": [itext(words()), itext("b")]})
    d = dict(input=words() if rng.random() < .1 else [item() for _ in range(rng.randrange(1, 9))])
    if rng.random() < .5: d["instructions"] = words()
    if rng.random() < .5: d["tools"] = some(rng, [FUNCTION], [FUNCTION, {"type": "custom", "name": "shell"}], [{"type": "web_search"}])
    if rng.random() < .3: d["reasoning"] = {"effort": some(rng, "low", "high", "none")}
    return d

def post(url, body):
    request = urllib.request.Request(url, json.dumps({"model": "m", **body}, ensure_ascii=False).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as r: return r.status, json.load(r)["token_ids"], None
    except urllib.error.HTTPError as e:
        return e.code, None, e.read()[:160].decode(errors="replace")

def decoder(path):
    """Ids of a byte-level tokenizer to bytes."""
    file = json.load(open(path))
    alphabet, extra = {}, 256
    for b in range(256):
        if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174: alphabet[chr(b)] = b
        else: alphabet[chr(extra)], extra = b, extra + 1
    table = {i: bytes(alphabet[c] for c in t) for t, i in file["model"]["vocab"].items() if all(c in alphabet for c in t)}
    table.update({a["id"]: a["content"].encode() for a in file["added_tokens"]})
    return lambda ids: b"".join(table[i] for i in ids)

def main(out, base, name, source, tokenizer, store=""):
    rng = random.Random(7)
    cases = [(n, "/v1/messages", {"max_tokens": 16, **b}) for n, b in MESSAGES.items()] + [(n, "/v1/responses", b) for n, b in RESPONSES.items()]
    cases += [(f"random {i}", "/v1/messages", {"max_tokens": 16, **random_messages(rng)}) for i in range(250)]
    cases += [(f"random {i}", "/v1/responses", random_responses(rng)) for i in range(250)]
    decode, renders = decoder(tokenizer), []
    for _, path, body in cases:
        status, ids, error = post(base + path + "/render", body)
        r = {"status": status}
        if ids:
            prompt = decode(ids)
            r |= {"bytes": len(prompt), "sha256": hashlib.sha256(prompt).hexdigest()}
            if store: r["text"] = prompt.decode()
        else: r["error"] = error
        renders.append(r)
    data = json.load(gzip.open(out)) if os.path.exists(out) else {"templates": {}}
    data["cases"] = [{"name": n, "path": p, "body": b} for n, p, b in cases]
    data["templates"][name] = {"template_sha256": hashlib.sha256(open(source, "rb").read()).hexdigest(), "renders": renders}
    with open(out, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        z.write(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())

main(*sys.argv[1:])
