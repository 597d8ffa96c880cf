#!/usr/bin/env bash
# Prints the path of a tmux, which the tests of `eppctl top` type into: $TMUX_BIN,
# one on PATH, or Debian's.
set -euo pipefail
source "$(dirname "$0")/given.sh"
given TMUX_BIN tmux
exec "$(dirname "$0")/debian.sh" tmux
