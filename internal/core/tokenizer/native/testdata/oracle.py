"""Encodes texts with the engines' own libraries, for the differential tests.

oracle.py hf FILE             tokenizer.json, with Hugging Face tokenizers
oracle.py ranks FILE OPTIONS  tiktoken ranks; OPTIONS: {"pattern", "specials", "nfc"}
oracle.py tekken FILE         tekken.json, with tiktoken
oracle.py spm FILE            tokenizer.model, with sentencepiece
oracle.py types               prints the types of components that Hugging Face tokenizers has

Standard input: batches of a u32 count, a u32 that is 1 where ids are to be put around
the texts (hf: what the post-processor adds; spm: <s>; the others know of none), and so
many texts as u32 length and UTF-8; standard output: for each text a u32 count and so many
u32 ids. All little-endian.
"""
import base64
import json
import struct
import sys


def hf(path):
    from tokenizers import Tokenizer

    t = Tokenizer.from_file(path)
    return lambda texts, around: [e.ids for e in t.encode_batch_fast(texts, add_special_tokens=around)]


def tiktoken(ranks, pattern, specials):
    from tiktoken import Encoding

    e = Encoding("oracle", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
    return lambda text: e.encode(text, allowed_special="all")


def ranks(path, options):
    import re

    from tokenizers.normalizers import NFC

    table = {}
    for line in open(path, "rb"):
        text, rank = line.split()
        table[base64.b64decode(text)] = int(rank)
    o = json.loads(options)
    encode = tiktoken(table, o["pattern"], o["specials"])
    if not o["nfc"]:
        return lambda texts, _: [encode(t) for t in texts]
    nfc = NFC()
    between = re.compile("(" + "|".join(map(re.escape, sorted(o["specials"], key=len, reverse=True))) + ")")

    def one(text):
        parts = between.split(text)
        return encode("".join(p if i % 2 else nfc.normalize_str(p) for i, p in enumerate(parts)))

    return lambda texts, _: [one(t) for t in texts]


def tekken(path):
    d = json.load(open(path))
    c = d["config"]
    specials = c["default_num_special_tokens"]
    n = c["default_vocab_size"] - specials
    table = {base64.b64decode(v["token_bytes"]): v["rank"] for v in d["vocab"][:n]}
    encode = tiktoken(table, c["pattern"], {})
    return lambda texts, _: [[i + specials for i in encode(t)] for t in texts]


def spm(path):
    from sentencepiece import SentencePieceProcessor

    m = SentencePieceProcessor(model_file=path)
    return lambda texts, around: m.encode(texts, add_bos=around)


def types():
    from tokenizers import models, normalizers, pre_tokenizers, processors

    parts = {"normalizer": normalizers, "pre_tokenizer": pre_tokenizers, "post_processor": processors, "model": models}
    bases = ("Normalizer", "PreTokenizer", "PostProcessor", "Model")
    print(json.dumps({
        part: [n for n, v in vars(m).items() if isinstance(v, type) and n not in bases]
        for part, m in parts.items()
    }))


def main():
    if sys.argv[1] == "types":
        return types()
    encode = {"hf": hf, "ranks": ranks, "tekken": tekken, "spm": spm}[sys.argv[1]](*sys.argv[2:])
    read, write = sys.stdin.buffer, sys.stdout.buffer
    while head := read.read(8):
        count, around = struct.unpack("<II", head)
        texts = []
        for _ in range(count):
            (n,) = struct.unpack("<I", read.read(4))
            texts.append(read.read(n).decode())
        for ids in encode(texts, around == 1):
            write.write(struct.pack(f"<I{len(ids)}I", len(ids), *ids))
        write.flush()


main()
