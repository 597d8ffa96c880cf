"""Trains a small SentencePiece model on the text below, for the tests of normalisers.

train.py FILE OPTIONS   writes FILE; OPTIONS: arguments of SentencePieceTrainer as JSON
train.py charsmap RULE  prints the precompiled_charsmap of a normalisation rule

Nothing of it is kept: the model is made in each run of the tests.
"""
import io
import json
import sys

import sentencepiece

TEXT = """The quick brown fox jumps over the lazy dog.
Hello world, hello again; this is some text to be cut into pieces.
12 of them, and 345 more: the world is in the word.
Élan, naïve, façade, Ångström, ﬁne ½ ㌀ ｶﾞ 中国 한국 привет
in an or er un the ing being nothing something word words
"""


def train(**options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT.splitlines() * 4), model_writer=out, hard_vocab_limit=False,
        minloglevel=2, num_threads=1, **{"vocab_size": 160, **options})
    return out.getvalue()


def field(message, number):
    """The bytes of the last field of that number in a protocol buffer."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (message[at] & 0x7F) << shift
            shift += 7
            at += 1
            if message[at - 1] < 0x80:
                return value, at

    at, found = 0, b""
    while at < len(message):
        key, at = varint(at)
        if key & 7 == 2:
            size, at = varint(at)
            if key >> 3 == number:
                found = message[at:at + size]
            at += size
        elif key & 7 == 5:
            at += 4
        elif key & 7 == 1:
            at += 8
        else:
            _, at = varint(at)
    return found


if sys.argv[1] == "charsmap":
    sys.stdout.buffer.write(field(field(train(normalization_rule_name=sys.argv[2]), 3), 2))
else:
    open(sys.argv[1], "wb").write(train(**json.loads(sys.argv[2])))
