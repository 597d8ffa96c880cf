#!/usr/bin/env bash
# Prints the path of a program that tests need, or of a file: the one that is
# there, or Debian's, which is installed when that is allowed. The package may have
# another name.
set -euo pipefail
wanted=${1:?usage: debian.sh PROGRAM|/FILE [PACKAGE]}
package=${2:-$wanted}
found() { [[ "$wanted" == /* && -e "$wanted" ]] && echo "$wanted" || command -v "$wanted"; }
if ! found >/dev/null; then
  if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "debian.sh: no $wanted found: install it (apt-get install $package)" >&2
    exit 1
  fi
  echo "installing $package with apt-get" >&2
  export DEBIAN_FRONTEND=noninteractive
  # Two tests may want something at once.
  install=(apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$package")
  "${install[@]}" >&2 || { apt-get -o DPkg::Lock::Timeout=300 update -qq >&2 && "${install[@]}" >&2; }
fi
found
