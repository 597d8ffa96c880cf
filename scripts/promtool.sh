#!/usr/bin/env bash
# Prints the path of Prometheus' promtool, which tests hold rules and expressions to:
# $PROMTOOL, one on PATH, or that of Debian's prometheus package, unpacked into .cache/.
# The package is not installed: it would start a Prometheus.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/.cache/promtool/promtool

source scripts/given.sh
given PROMTOOL promtool
if [[ ! -x "$bin" ]]; then
  if ! command -v apt-get >/dev/null; then
    echo "promtool.sh: no promtool found: install Prometheus, or set PROMTOOL=/path/to/promtool" >&2
    exit 1
  fi
  echo "fetching prometheus with apt-get into .cache/promtool (19 MB)" >&2
  mkdir -p .cache
  part=$(mktemp -d .cache/promtool.XXXXXX) # of this call alone: two may run at once
  trap 'rm -rf "$part"' EXIT
  fetch() { (cd "$part" && apt-get -o APT::Sandbox::User=root download -qq prometheus >&2); }
  fetch || { apt-get -o DPkg::Lock::Timeout=300 update -qq >&2 && fetch; }
  dpkg-deb --fsys-tarfile "$part"/prometheus_*.deb | tar -x -C "$part" --strip-components 3 ./usr/bin/promtool
  rm "$part"/*.deb
  [[ -x "$bin" ]] || mv -T "$part" "$PWD/.cache/promtool"
fi
echo "$bin"
