"""measure.go's work for a Python library: wheel.py hf|fastokens FILE CORPUS ROUND."""
import gc
import json
import sys
import time

LARGE, SMALL, SMALLS, BETWEENS, BETWEEN, ROTATE_BY, WARM_TIMES = 128 << 10, 1 << 10, 96, 24, 16 << 10, 131071, 5


def opener(lib, file):
    if lib == "hf":
        from tokenizers import Tokenizer

        def load():
            t = Tokenizer.from_file(file)
            return lambda s: t.encode(s, add_special_tokens=False).ids
    else:
        from fastokens import Tokenizer

        def load():
            t = Tokenizer.from_file(file)
            return lambda s: t.encode(s).ids
    return load


def emit(lang, phase, size, value):
    print(json.dumps({"lang": lang, "phase": phase, "size": size, "value": value}))


def main(lib, file, corpus, round):
    load = opener(lib, file)
    for lang in ("en", "code", "zh"):
        raw = open(f"{corpus}/{lang}.txt", "rb").read()
        at = round * ROTATE_BY % len(raw)
        text = (raw[at:] + raw[:at]).decode(errors="ignore").encode()
        place = 0

        def cut(n):
            nonlocal place
            end = min(place + n, len(text))
            while end < len(text) and text[end] & 0xC0 == 0x80:
                end += 1
            s = text[place:end]
            place = end
            return len(s), s.decode()

        def timed(phase, size, times, *texts):
            best = 0.0
            for _ in range(times):
                start = time.process_time()
                for _, s in texts:
                    encode(s)
                best = max(best, sum(n for n, _ in texts) / 1e6 / (time.process_time() - start))
            emit(lang, phase, size, best)

        start = time.process_time()
        encode = load()
        emit("", "load", 0, (time.process_time() - start) * 1e3)
        gc.collect()
        encode("a")
        timed("empty", SMALL, 1, cut(SMALL))
        timed("empty", LARGE, 1, cut(LARGE))
        for _ in range(BETWEENS):
            encode(cut(BETWEEN)[1])
        big = cut(LARGE)
        little = [cut(SMALL) for _ in range(SMALLS)]
        timed("new", LARGE, 1, big)
        timed("warm", LARGE, WARM_TIMES, big)
        timed("new", SMALL, 1, *little)
        timed("warm", SMALL, WARM_TIMES, *little)
        h = 2166136261  # FNV-1a of the ids
        for i in encode(big[1]):
            h = (h ^ i) * 16777619 & 0xFFFFFFFF
        emit(lang, "ids", LARGE, h)
        del encode
        gc.collect()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
