"""Prints what orjson makes of the texts of corpus.json.gz: python3 corpus_orjson.py | gzip -9n > orjson.json.gz

One object per text, in their order: "dump" (json.dumps of what was read) or "error". SGLang 0.5.23 reads
request bodies with it (http_server.py, ORJSONRequest), and the arguments of tool calls.
"""
import base64, gzip, json, os, sys
import orjson

assert orjson.__version__ == "3.13.0", orjson.__version__
out = []
for text in json.load(gzip.open(os.path.join(os.path.dirname(__file__), "corpus.json.gz"))):
    try: out.append({"dump": json.dumps(orjson.loads(base64.b64decode(text["text"])))})
    except orjson.JSONDecodeError as e: out.append({"error": type(e).__name__})
json.dump(out, sys.stdout, separators=(",", ":"))
