#!/usr/bin/env bash
# Writes into out/ what packages and image hold beside the binary and the files of
# the repository: man pages, packed, and the authorities. Equal for equal sources.
set -euo pipefail
cd "$(dirname "$0")/.."
rm -rf out/man
mkdir -p out/man
for page in man/*.1; do
  gzip -9 -n -c "$page" > "out/man/${page##*/}.gz" # -n: no time of making
done
go run ./scripts/roots > out/ca-certificates.crt
