#!/usr/bin/env bash
# Runs every fuzz target of the module for a while each: fuzz.sh 10s
#
# `go test -fuzz` links a binary for each target. Here a package has one, and as many
# packages run side by side as there are processors, with a worker each.
set -euo pipefail
cd "$(dirname "$0")/.."
export time=${1:-10s} bin cache
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
cache=$(go env GOCACHE)/fuzz # where `go test -fuzz` keeps the inputs it found

# A package a line, with its folder and its targets, which are found in the sources. Most
# targets first, so that no processor waits for the last package.
packages=$(
  go list -f '{{.ImportPath}} {{.Dir}}{{range .TestGoFiles}} {{.}}{{end}}{{range .XTestGoFiles}} {{.}}{{end}}' ./... |
    while read -r pkg dir files; do
      [[ -n "$files" ]] || continue
      # shellcheck disable=SC2086 # one word a file
      echo "$pkg" "$dir" $(cd "$dir" && sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $files)
    done | awk 'NF > 2 { print NF, $0 }' | sort -rn | cut -d' ' -f2-
)
n=$(awk '{ n += NF - 2 } END { print n + 0 }' <<<"$packages")
if [[ $n -eq 0 ]]; then
  echo "fuzz.sh: found no fuzz target" >&2
  exit 1
fi

# One after the other: side by side they would compile twice what they share.
while read -r pkg _; do
  go test -c -fuzz . -o "$bin/${pkg//\//.}" "$pkg"
done <<<"$packages"

# fuzz PACKAGE DIR TARGET... runs the targets of a package one after the other.
fuzz() {
  local pkg=$1 target out
  cd "$2"
  for target in "${@:3}"; do
    # Go spends up to a minute on making each new input shorter: most of a short run.
    out=$("$bin/${pkg//\//.}" -test.paniconexit0 -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" \
      -test.fuzzminimizetime 1x -test.parallel 1 -test.fuzzcachedir "$cache/$pkg" 2>&1) || {
      printf 'fuzz %s %s: failed\n%s\n' "$pkg" "$target" "$out" >&2
      exit 255 # xargs begins no further package
    }
    printf 'fuzz %s %s %s\n%s\n' "$pkg" "$target" "$time" "$out"
  done
}
export -f fuzz
xargs -P "$(nproc)" -L 1 bash -euc 'fuzz "$@"' fuzz <<<"$packages"
echo "fuzz: $n targets"
