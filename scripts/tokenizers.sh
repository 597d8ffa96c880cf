#!/usr/bin/env bash
# Makes sure python3 can import the libraries that the tokenizer is compared with:
# Hugging Face tokenizers, tiktoken, sentencepiece and fastokens. Prints the folder to put on
# PYTHONPATH.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=(tokenizers==0.23.3 tiktoken==0.14.0 regex==2026.11.19 sentencepiece==0.2.3 fastokens==0.3.5)
dir=.cache/python-$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c1-12)

command -v python3 >/dev/null || { echo "tokenizers.sh: python3 is missing" >&2; exit 1; }
if [[ ! -d "$dir" ]]; then
  echo "installing ${packages[*]} from PyPI into $dir" >&2
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "tokenizers.sh: python3 has no pip" >&2
    exit 1
  fi
  part=$dir.part$$ # of this call alone: two may run at once
  trap 'rm -rf "$part"' EXIT
  # What they need only to download models is left out.
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$part" "${packages[@]}" >&2
  [[ -d "$dir" ]] || mv "$part" "$dir"
fi
echo "$PWD/$dir"
