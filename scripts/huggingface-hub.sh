#!/usr/bin/env bash
# Makes sure python3 can import huggingface_hub, whose cache of models eppctl shares:
# tests read with one what the other wrote. Prints the folder to put on PYTHONPATH.
set -euo pipefail
cd "$(dirname "$0")/.."
version=2.4.0
dir=.cache/python-huggingface_hub$version

command -v python3 >/dev/null || { echo "huggingface-hub.sh: python3 is missing" >&2; exit 1; }
if [[ ! -d "$dir" ]]; then
  echo "installing huggingface_hub $version from PyPI into $dir" >&2
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "huggingface-hub.sh: python3 has no pip" >&2
    exit 1
  fi
  part=$dir.part$$ # of this call alone: two may run at once
  trap 'rm -rf "$part"' EXIT
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --target "$part" huggingface_hub==$version >&2
  [[ -d "$dir" ]] || mv "$part" "$dir"
fi
echo "$PWD/$dir"
