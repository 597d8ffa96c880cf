#!/usr/bin/env bash
# Writes cmd/eppctl/default.pgo, by which the compiler lays out what it builds: CPU
# profiles of the benchmarks of what a prompt goes through, from body to ids, in one. The
# index and the decision are not in it: by a profile of theirs the compiler made a
# decision among pods that all tie take a tenth to a half longer, and no other less.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
data=$(scripts/tokenizer-data.sh models corpus)
export TOKENIZER_MODELS=$data/models TOKENIZER_CORPUS=$data/corpus

while read -r pkg pattern time; do
  echo "profile $pkg"
  go test -run '^$' -bench "$pattern" -benchtime "$time" -cpuprofile "$dir/${pkg//\//-}.pprof" -o "$dir/test" "./internal/$pkg" >/dev/null
done <<'LIST'
core/tokenizer/native Encode 500ms
core/chat/jinja2 Render 1s
core/prompt Parse 500ms
LIST
go tool pprof -proto "$dir"/*.pprof >cmd/eppctl/default.pgo
