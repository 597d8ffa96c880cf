"""Captures what vLLM makes of request bodies with NaN, Infinity and -Infinity, which Python takes for JSON.

    vllm serve ../models/tiny-llama --load-format dummy --dtype bfloat16 --chat-template T.jinja --served-model-name m
        --enable-scale-out --max-model-len 4096 --enable-auto-tool-choice --tool-call-parser hermes --port P ...
    python capture.py http://127.0.0.1:P T.jinja fields.json | gzip -9n > json-constants.json.gz

fields.json has the names of the fields of vLLM's request classes, by the endpoint's last word:
{"chat": list(ChatCompletionRequest.model_fields), "completion": ..., "responses": ..., "messages": ...}

Each body goes to the endpoint itself, for its status, and to the render endpoint beside it, for the
text that the engine tokenizes (its ids, turned back by /detokenize). Bodies are stored as text: they
are no JSON.
"""
import json, sys, urllib.error, urllib.request

BASE, TEMPLATE, FIELDS = sys.argv[1], open(sys.argv[2]).read(), json.load(open(sys.argv[3]))
CONSTANTS = ["NaN", "Infinity", "-Infinity"]
CHAT, COMPLETION, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"
HI = '{"role":"user","content":"Hi"}'

def post(path, body):
    request = urllib.request.Request(BASE + path, body.encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as r: return r.status, json.loads(r.read())
    except urllib.error.HTTPError as e: return e.code, None

def ids(answer):
    first = answer[0] if isinstance(answer, list) else answer
    return first.get("token_ids") or first.get("prompt_token_ids")

def capture(name, path, body):
    status, _ = post(path, body)
    out = {"name": name, "path": path, "body": body, "status": status}
    if status == 200:
        rendered, answer = post(path + "/render", body)
        assert rendered == 200, (name, rendered)
        out["text"] = post("/detokenize", json.dumps({"model": "m", "tokens": ids(answer)}))[1]["prompt"]
    return out

def chat(more="", messages=HI): return CHAT, '{"model":"m","messages":[%s],"max_tokens":1%s}' % (messages, more)
def schema(v): return chat(',"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"properties":{"a":{"default":%s}}}}}]' % v)
def call(arguments): return chat("", HI + ',{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":%s}}]},{"role":"tool","tool_call_id":"c","content":"x"}' % json.dumps(arguments))
def kwargs(v): return chat(',"chat_template_kwargs":{"x":%s}' % v)
def completion(prompt, more=""): return COMPLETION, '{"model":"m","prompt":%s,"max_tokens":1%s}' % (prompt, more)
def messages(more="", turns=HI): return MESSAGES, '{"model":"m","max_tokens":1,"messages":[%s]%s}' % (turns, more)
def responses(more="", given='"Hi"'): return RESPONSES, '{"model":"m","max_output_tokens":1,"input":%s%s}' % (given, more)

LITERALS = CONSTANTS + ["1e400", "-1e400", "1e999999", "[NaN,NaN]", " [ -Infinity ,NaN\n]", '{"a":NaN,"b":Infinity,"a":-Infinity}', '{"NaN":1}', '"NaN"', '"\\"NaN"', "[[],NaN,{},0.0]",
    "nan", "-NaN", "+Infinity", "- Infinity", "--Infinity", "NaNx", "Infinityy", "1NaN", "NaN1", "NaN.5", "1Infinity", "Infinity1", "Infinitye5", "-infinity", "INFINITY", "Inf", "Na", "NaN NaN", "{NaN:1}", "NaN/**/", "NaN\u00a0"]

def cases():
    for v in LITERALS:
        yield "kwargs " + v, kwargs(v)
        yield "schema " + v, schema(v)
        yield "arguments " + v, call('{"a": %s}' % v)
        yield "unknown field " + v, chat(',"unknown":' + v)
        yield "completion " + v, completion('"Hi NaN"', ',"unknown":' + v)
    for v in ["NaN", "-Infinity", "[NaN]", '{"a":NaN', '{"a":NaN}}', '{"a": 1, "b": NaN, "a": -Infinity}', ' {"a":NaN} ', '\ufeff{"a":NaN}', "", "[1", "5"]: yield "all of arguments " + v, call(v)
    for n in ["name", "description", "parameters", "strict", "defer_loading", "other"]: yield "function " + n, chat(',"tools":[{"type":"function","function":{"name":"f","parameters":{},"%s":NaN}}]' % n)
    for n in ["type", "function", "defer_loading", "other"]: yield "tool " + n, chat(',"tools":[{"type":"function","function":{"name":"f","parameters":{}},"%s":NaN}]' % n)
    for v in ["NaN", "5", "null", "true", '"s"']:
        for role in ["user", "assistant", "system", "developer", "tool"]:
            for n in ["name", "tool_call_id", "task", "tools", "reasoning", "reasoning_content", "tool_calls", "other"]:
                own = ',"tool_call_id":"c"' if role == "tool" and n != "tool_call_id" else ""
                yield f"{role}'s {n} {v}", chat("", HI + ',{"role":"%s","content":"Yo"%s,"%s":%s},%s' % (role, own, n, v, HI))
    for n in ["role", "content"]: yield "message " + n, chat("", '{"role":"user","content":"Hi","%s":NaN}' % n)
    for n in ["type", "text", "other"]: yield "part " + n, chat("", '{"role":"user","content":[{"type":"text","text":"Hi","%s":NaN}]}' % n)
    yield "part", chat("", '{"role":"user","content":[NaN]}')
    yield "message", chat("", HI + ",NaN")
    yield "text", chat("", '{"role":"user","content":"NaN, Infinity \\" -Infinity NaN"}')
    for n in ["type", "id", "function", "other"]: yield "call " + n, chat("", HI + ',{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"%s":NaN}]}' % n)
    for n in ["name", "arguments", "other"]: yield "called function " + n, chat("", HI + ',{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}","%s":NaN}}]}' % n)
    yield "call arguments as an object", chat("", HI + ',{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{"a":NaN}}}]}')
    for v in ["NaN", "5", "null", '"t"', '["t"]']: yield "document " + v, chat(',"documents":[{"title":%s}]' % v)
    yield "documents", chat(',"documents":[NaN]')
    for v in ['["a",NaN]', "[1,2,NaN]", "[NaN]", "[[1,NaN]]"]: yield "prompt " + v, completion(v)
    for v in CONSTANTS:
        yield "messages, input " + v, messages("", HI + ',{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":%s}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"x"}]}' % v)
        yield "messages, schema " + v, messages(',"tools":[{"name":"f","input_schema":{"type":"object","a":%s}}]' % v)
        yield "messages, kwargs " + v, messages(',"chat_template_kwargs":{"x":%s}' % v)
        yield "messages, unknown field " + v, messages(',"unknown":' + v)
        yield "responses, arguments " + v, responses("", '[{"role":"user","content":"Hi"},{"type":"function_call","call_id":"c","name":"f","arguments":"{\\"a\\":%s}"},{"type":"function_call_output","call_id":"c","output":"x"}]' % v)
        yield "responses, schema " + v, responses(',"tools":[{"type":"function","name":"f","strict":false,"parameters":{"a":%s}}]' % v)
        yield "responses, kwargs " + v, responses(',"chat_template_kwargs":{"x":%s}' % v)
        yield "responses, unknown field " + v, responses(',"unknown":' + v)
    heads = {"chat": chat, "completion": lambda more: completion('"Hi"', more), "messages": messages, "responses": responses}
    for endpoint, names in FIELDS.items():
        for n in names:
            for v in CONSTANTS + ["[NaN]"]: yield f"field of {endpoint}: {n} {v}", heads[endpoint](',"%s":%s' % (n, v))

def depths():
    """The deepest list that each place takes."""
    for name, make in {"unknown field": lambda v: chat(',"unknown":' + v), "kwargs": kwargs, "schema": schema, "completion": lambda v: completion('"Hi"', ',"unknown":' + v)}.items():
        taken, refused = 100, 20000
        while refused - taken > 1:
            d = (taken + refused) // 2
            if post(*make("[" * d + "]" * d))[0] == 200: taken = d
            else: refused = d
        yield {"name": name, "taken": taken, "status": post(*make("[" * 20000 + "]" * 20000))[0]}

out = {"engine": "vLLM 0.32.0", "template": TEMPLATE, "fields": FIELDS, "cases": [capture(name, *case) for name, case in cases()], "depths": list(depths())}
json.dump(out, sys.stdout, indent=1)
