#!/usr/bin/env bash
# Runs every fuzz target of the module for a while each: fuzz.sh 10s
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-10s}
n=0
while read -r pkg target; do
  n=$((n + 1))
  echo "fuzz $pkg $target $time"
  # Go spends up to a minute on making each new input shorter: most of a short run.
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1x "$pkg"
done < <(
  # One line per target, found in the sources: `go test -list` would build each
  # package a second time.
  go list -f '{{$p := .ImportPath}}{{$d := .Dir}}{{range .TestGoFiles}}{{$p}} {{$d}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$p}} {{$d}}/{{.}}{{"\n"}}{{end}}' ./... |
    while read -r pkg file; do
      [[ -n "$pkg" ]] || continue
      sed -n "s/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p" "$file" | sed "s|^|$pkg |"
    done
)
if [[ $n -eq 0 ]]; then
  echo "fuzz.sh: found no fuzz target" >&2
  exit 1
fi
echo "fuzz: $n targets"
