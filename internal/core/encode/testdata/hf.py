"""Encodes prompts with Hugging Face tokenizers, chats rendered by the real Jinja2.

hf.py FOLDER: tokenizer.json and tokenizer_config.json. Standard input is a JSON list
of {"text", "special"} and {"messages", "special", "generation" and perhaps "kwargs"}; standard
output a list of lists of ids. Contents are passed to the template as parts, which is
what engines do for templates that go through them.
"""
import json
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

folder = sys.argv[1]
tokenizer = Tokenizer.from_file(folder + "/tokenizer.json")
config = json.load(open(folder + "/tokenizer_config.json"))
template = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).from_string(config["chat_template"])


def text(case):
    if "text" in case:
        return case["text"]
    messages = [dict(m) for m in case["messages"]]
    for m in messages:
        if isinstance(m["content"], str):
            m["content"] = [{"type": "text", "text": m["content"]}]
    return template.render(
        messages=messages, bos_token=config["bos_token"], eos_token=config["eos_token"],
        add_generation_prompt=case["generation"], **case.get("kwargs", {}))


json.dump([tokenizer.encode(text(c), add_special_tokens=c["special"]).ids for c in json.load(sys.stdin)], sys.stdout)
