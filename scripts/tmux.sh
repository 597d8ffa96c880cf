#!/usr/bin/env bash
# Prints the path of a tmux, which the tests of `eppctl top` type into: $TMUX_BIN,
# one on PATH, or Debian's.
set -euo pipefail
if [[ -n "${TMUX_BIN:-}" ]]; then
  [[ -x "$TMUX_BIN" ]] || { echo "tmux.sh: TMUX_BIN=$TMUX_BIN is no executable file" >&2; exit 1; }
  echo "$TMUX_BIN"
  exit
fi
exec "$(dirname "$0")/debian.sh" tmux
