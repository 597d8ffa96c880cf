#!/usr/bin/env bash
# Records explain, top and tap beside the demo's serve, Envoy and engines, into
# docs/img: NAME.cast for `asciinema play`, NAME.svg for pages. Nothing in there is
# made by hand. BIN is the eppctl to drive.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/${BIN:-bin/eppctl}
img=$PWD/docs/img
ENVOY=$(scripts/envoy.sh)
tmux_bin=$(scripts/tmux.sh)
export ENVOY
asciinema=$(scripts/debian.sh asciinema)
rich=$PWD/.cache/python-rich14.1.0
if [[ ! -d "$rich" ]]; then
  part=$rich.part$$ # of this call alone: two may run at once
  trap 'rm -rf "$part"' EXIT
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --target "$part" rich==14.1.0 >&2
  [[ -d "$rich" ]] || mv "$part" "$rich"
  rm -rf "$part"
fi

work=$(mktemp -d)
server=eppctl-recordings-$$
tm() { "$tmux_bin" -L "$server" -f /dev/null "$@"; }
end() {
  tm kill-server 2>/dev/null || true
  [[ -z "${clients:-}" ]] || { kill "$clients" && wait "$clients" || true; } 2>/dev/null
  [[ -z "${demo:-}" ]] || { kill -INT "$demo" 2>/dev/null && wait "$demo" || true; }
  rm -rf "$work" ${dir:+"$dir"}
}
trap end EXIT

# patiently TEXT COMMAND... waits until the command prints the text.
patiently() {
  local text=$1
  shift
  for _ in $(seq 600); do
    kill -0 "$demo" 2>/dev/null || break
    if "$@" 2>/dev/null | grep -- "$text" >/dev/null; then return; fi
    sleep 0.2
  done
  echo "recordings: waited in vain for \"$text\" of: $*" >&2
  "$@" >&2 || true
  cat "$work/demo.err" >&2
  exit 1
}

# begin NAME COLUMNS ROWS COMMAND starts a recording.
begin() {
  local name=$1 columns=$2 rows=$3 command=$4
  tm new-session -d -s "$name" -x "$columns" -y "$rows" -c "$work" \
    "$asciinema rec -q --overwrite -i 2 -t 'eppctl $name' -c '$command' '$img/$name.cast'; sleep 600"
}
screen() { tm capture-pane -p -t "=$1:"; }
keys() { tm send-keys -t "=$1:" "${@:2}"; }

# picture NAME FILE writes what is on the screen now.
picture() {
  tm capture-pane -e -p -t "=$1:" | PYTHONPATH=$rich python3 scripts/screen2svg.py "eppctl $1" > "$img/$2.svg"
}

"$bin" sim demo --keep --out "$work/demo.json" > "$work/demo.out" 2> "$work/demo.err" &
demo=$!
patiently 'files: ' cat "$work/demo.err"
dir=$(sed -n 's/.*files: \(.*\))$/\1/p' "$work/demo.err")
config=$dir/eppctl.yaml
patiently 'admin:' cat "$config"
admin=$(sed -n 's/.* admin: "\([^"]*\)".*/\1/p' "$config")
export PATH=$(dirname "$bin"):$PATH EPPCTL_ADDR=$admin LANG=C.UTF-8

mkdir -p "$img"
begin tap 120 34 'eppctl tap --from serve --sample 1/4 -c 50'
patiently 'matched the filter' screen tap
picture tap tap

patiently 'It keeps running' cat "$work/demo.out" # its own load has an end
url=$(grep -om1 'http://[^ ]*/v1/chat/completions' "$work/demo.out")
python3 scripts/clients.py "$url" 10 &
clients=$!

begin top 100 30 'eppctl top'
patiently 'REQUESTS  [1-9]' screen top
sleep 15 # until the courses have a course
picture top top
keys top Enter
patiently 'COURSE' screen top
sleep 4
picture top top-pod
keys top Escape 2
sleep 3
keys top 3
sleep 2
keys top q

# Of the latest picks one that was won by something.
id=$(curl -s "http://$admin/v1/picks?limit=200" | python3 -c '
import json, sys
picks = json.load(sys.stdin)["picks"]
print(max((p for p in picks if p["cached_tokens"]), key=lambda p: min(p["margin"] or 0, 0.02))["pick_id"])')
begin explain 100 38 "eppctl explain --request-id $id; sleep 1" # asciinema loses what stands in the terminal when its command ends
patiently 'TRY ' screen explain
picture explain explain
tm kill-server
ls -l "$img"
