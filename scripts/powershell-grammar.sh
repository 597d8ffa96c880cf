#!/usr/bin/env bash
# Makes sure python3 can parse PowerShell: tree-sitter and its grammar of the language,
# since PowerShell itself is in no registry that tests may use. Prints the folder to put
# on PYTHONPATH.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=(tree-sitter==0.25.2 tree-sitter-powershell==0.26.4)
dir=.cache/python-$(printf '%s\n' "${packages[@]}" | sha256sum | cut -c1-12)

command -v python3 >/dev/null || { echo "powershell-grammar.sh: python3 is missing" >&2; exit 1; }
if [[ ! -d "$dir" ]]; then
  echo "installing ${packages[*]} from PyPI into $dir" >&2
  if ! python3 -m pip --version >/dev/null 2>&1; then
    echo "powershell-grammar.sh: python3 has no pip" >&2
    exit 1
  fi
  part=$dir.part$$ # of this call alone: two may run at once
  trap 'rm -rf "$part"' EXIT
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$part" "${packages[@]}" >&2
  [[ -d "$dir" ]] || mv "$part" "$dir"
fi
echo "$PWD/$dir"
