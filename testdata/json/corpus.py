"""Prints what Python's json.loads makes of random and of mutated JSON texts: python3 corpus.py | gzip -9n > corpus.json.gz

One object per text: "text" in base64, and either "dump" (json.dumps of what was read, keys in order,
not escaped) or "error". vLLM reads request bodies with it (FastAPI's Request.json).
"""
import base64, json, random, sys

SEEDS = ['{"model":"m","prompt":"hi","n":1,"stream":true,"temperature":0.7}', '{"a":1,"b":{"c":[1,2,{"d":null}]},"a":[true,false]}',
         '[1.0,-0.0,1e400,-1e400,1E+5,1e-7,123456789012345678901234567890,0.1,5e-324,100000000000000000000.0]', '"\\u00e9\\ud83d\\ude00\\n\\"\\\\\\/"',
         '{"A":1,"a":2,"\\u0061":3}', '{"x":"é漢😀"}', '[[[[]]]]', '{}', ' [ ] ', 'null', '-1', '{"k":"\\ud800"}', '{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}',
         '[NaN,Infinity,-Infinity]', '[1,]', '{"a":1,}', "{'a':1}", '[01]', '[1.]', '[.5]', '[+1]', '[1e]', '"\t"', '"\\x"', '[1 2]', '{"a" 1}', '{"a":1}{}', '\ufeff{"a":1}', '// c\n1', '{"":""}', '[-]', '[1e5,1e15,1e16,1e17,123456.789e3,2e-5]', '"\\ud83d"', '"\\ude00\\ud83d"', '"\\uD83D\\u0041"']
PIECES = ['"', "\\", "{", "}", "[", "]", ",", ":", "0", "1", "-", "e", "E", ".", "+", "\\u", "d800", "null", "true", "NaN", " ", "\n", "\x00", "\x7f", "é", "\xa0", "\ud83d", '"a":', "1e9", "00"]

def mutate(rng, s):
    s = list(s)
    for _ in range(rng.randrange(1, 4)):
        i = rng.randrange(len(s) + 1)
        op = rng.randrange(3)
        if op == 0: s[i:i] = rng.choice(PIECES)
        elif op == 1: del s[i:i + rng.randrange(1, 4)]
        else: s[i:i + 1] = rng.choice(PIECES)
    return "".join(s)

def number(rng):
    digits = lambda n: "".join(rng.choice("0123456789") for _ in range(rng.randrange(1, n)))
    s = rng.choice(["", "-"]) + rng.choice(["0", rng.choice("123456789") + digits(25)])
    if rng.random() < .4: s += "." + digits(20)
    if rng.random() < .4: s += rng.choice("eE") + rng.choice(["", "+", "-"]) + digits(4)
    return s

def value(rng, depth):
    space = lambda: rng.choice(["", "", " ", "\n\t "])
    kind = rng.randrange(7 if depth else 4)
    if kind < 2: return number(rng)
    if kind == 2: return rng.choice(["null", "true", "false"])
    if kind == 3: return json.dumps("".join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(0, 0xd800), rng.randrange(0xe000, 0x110000)])) for _ in range(rng.randrange(6))), ensure_ascii=rng.random() < .5)
    if kind < 6: return "{" + ",".join(space() + json.dumps(rng.choice(["a", "b", "A", "\u00e9", ""])) + space() + ":" + space() + value(rng, depth - 1) for _ in range(rng.randrange(5))) + space() + "}"
    return "[" + ",".join(space() + value(rng, depth - 1) + space() for _ in range(rng.randrange(5))) + "]"

rng = random.Random(11)
texts = [s.encode() for s in SEEDS]
while len(texts) < 4000:
    b = mutate(rng, rng.choice(SEEDS)).encode("utf-8", "surrogatepass")
    if rng.random() < .1 and b: b = b[:(i := rng.randrange(len(b)))] + bytes([rng.randrange(256)]) + b[i + 1:]
    texts.append(b)
texts += [value(rng, 4).encode() for _ in range(2000)]
out = []
for b in dict.fromkeys(texts):
    r = {"text": base64.b64encode(b).decode()}
    try: r["dump"] = json.dumps(json.loads(b), ensure_ascii=True)
    except ValueError as e: r["error"] = type(e).__name__
    out.append(r)
json.dump(out, sys.stdout, separators=(",", ":"))
