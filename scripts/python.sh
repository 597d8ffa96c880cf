#!/usr/bin/env bash
# Makes sure python3 can import pyzmq and msgpack, the real libzmq that the
# publisher tests use, and Jinja2, beside which chat templates are tested. Prints
# the folder to put on PYTHONPATH, which is empty when python3 has all already.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=.cache/python-zmq27.3.0-msgpack1.2.4-jinja3.1.6

command -v python3 >/dev/null || { echo "python.sh: python3 is missing" >&2; exit 1; }
if python3 -c 'import zmq, msgpack, jinja2; assert jinja2.__version__ == "3.1.6"' 2>/dev/null; then
  exit
fi
if [[ ! -d "$dir" ]]; then
  echo "installing pyzmq, msgpack and Jinja2 from PyPI into $dir" >&2
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "python.sh: python3 has no pip: install pip, or pyzmq, msgpack and Jinja2 3.1.6" >&2
    exit 1
  fi
  part=$dir.part$$ # of this call alone: two may run at once
  trap 'rm -rf "$part"' EXIT
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --target "$part" pyzmq==27.3.0 msgpack==1.2.4 jinja2==3.1.6 >&2
  [[ -d "$dir" ]] || mv "$part" "$dir"
fi
echo "$PWD/$dir"
