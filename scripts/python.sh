#!/usr/bin/env bash
# Makes sure python3 can import pyzmq and msgpack, the real libzmq that the
# publisher tests use. Prints the folder to put on PYTHONPATH, which is empty
# when python3 has both already.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=.cache/python-zmq27.3.0-msgpack1.2.4

command -v python3 >/dev/null || { echo "python.sh: python3 is missing" >&2; exit 1; }
if python3 -c 'import zmq, msgpack' 2>/dev/null; then
  exit
fi
if [[ ! -d "$dir" ]]; then
  echo "installing pyzmq and msgpack from PyPI into $dir" >&2
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "python.sh: python3 has no pip: install pip, or pyzmq and msgpack" >&2
    exit 1
  fi
  rm -rf "$dir.part"
  python3 -m pip install --quiet --disable-pip-version-check --target "$dir.part" pyzmq==27.3.0 msgpack==1.2.4 >&2
  mv "$dir.part" "$dir"
fi
echo "$PWD/$dir"
