"""Renders templates with Jinja2 under the settings of transformers 5's
apply_chat_template. One JSON object per line in, one per line out:

  {"template": TEXT, "vars": {...}, "now": "2026-11-29T11:00:00"}  ->  {"text": TEXT} or {"error": CLASS}
"""
import datetime
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox
import jinja2.utils


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_pass"), [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def _pass(self, context, caller):
        return caller()


def check(name):
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError("underscore")


class Namespace(jinja2.utils.Namespace):
    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attrs = dict(*args, **kwargs)
        for name in attrs:
            check(name)
        jinja2.utils.Namespace.__init__(self, attrs)

    def __setitem__(self, name, value):
        check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)


class Dict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)


clock = [None]


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = jinja2.sandbox.ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
)
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = lambda format: clock[0].strftime(format)
env.globals["dict"] = Dict()
env.globals["namespace"] = Namespace

compiled = {}
for line in sys.stdin:
    job = json.loads(line)
    try:
        clock[0] = datetime.datetime.fromisoformat(job["now"])
        source = job["template"]
        if source not in compiled:
            compiled[source] = env.from_string(source)
        answer = {"text": compiled[source].render(**job["vars"])}
    except Exception as e:
        answer = {"error": type(e).__name__, "message": str(e)[:200]}
    print(json.dumps(answer), flush=True)
