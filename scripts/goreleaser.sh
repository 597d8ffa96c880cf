#!/usr/bin/env bash
# Prints a folder with the programs that make a release, goreleaser and
# cyclonedx-gomod, built into .cache/ the first time (some minutes) at the versions
# of scripts/goreleaser/go.mod. Why not newer ones: docs/releasing.md.
set -euo pipefail
cd "$(dirname "$0")/.."
sum=$(cat scripts/goreleaser/go.mod scripts/goreleaser/go.sum | sha256sum | cut -c1-12)
dir=$PWD/.cache/goreleaser-$sum
if [[ ! -d "$dir" ]]; then
  echo "building goreleaser into $dir (some minutes)" >&2
  part=$dir.part$$ # of this call alone: two may run at once
  trap 'rm -rf "$part"' EXIT
  mkdir -p "$part"
  # From where the modules are: none of them is a dependency of eppctl.
  (cd scripts/goreleaser && CGO_ENABLED=0 go build -o "$part/" tool) >&2
  [[ -d "$dir" ]] || mv "$part" "$dir"
fi
echo "$dir"
