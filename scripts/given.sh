# For scripts that print the path of a program. given VARIABLE PROGRAM ends the script with
# the one that $VARIABLE names, or that is on PATH; without one the script goes on.
given() {
  local named=${!1:-} path
  if [[ -n "$named" ]]; then
    [[ -x "$named" ]] || { echo "${0##*/}: $1=$named is no executable file" >&2; exit 1; }
    echo "$named"
    exit
  fi
  if path=$(command -v "$2"); then
    echo "$path"
    exit
  fi
}
