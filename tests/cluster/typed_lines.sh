# shellcheck shell=bash
# Sourced by the scripts that type what docs/launching.md has, line by line as it stands there.
declare -A inputs=() outputs=()

# Prints the lines of the block below `<!-- walkthrough: TITLE -->`, each `PROMPT$ LINE`.
lines_of() {  # TITLE
  awk -v title="<!-- walkthrough: $1 -->" '$0 == title { found = 1 } found && /^```/ { if (inside) exit; inside = 1; next }
    inside' "$(dirname "${BASH_SOURCE[0]}")/../../docs/launching.md"
}

# Starts a shell that lines are typed into: COMMAND runs it. Its errors go to LOG. Sets `shell`, its process.
open_shell() {  # NAME LOG COMMAND…
  local name=$1 log=$2 pipes
  shift 2
  pipes=$(mktemp -d)
  mkfifo "$pipes/in" "$pipes/out"
  ("$@" <"$pipes/in" >"$pipes/out" 2>>"$log") &
  # shellcheck disable=SC2034  # for the caller
  shell=$!
  # shellcheck disable=SC1083,SC2086,SC2093
  exec {inputs[$name]}>"$pipes/in" {outputs[$name]}<"$pipes/out"
  rm -r "$pipes"
}

# Types a line, shows what it says, and ends as it does.
type_line() {  # NAME LINE
  local word
  printf '%s\necho "_ended $?"\n' "$2" >&"${inputs[$1]}"
  while IFS= read -r -t 900 -u "${outputs[$1]}" word; do
    [[ $word != "_ended "* ]] || return "${word#_ended }"
    echo "$word"
  done
  echo "no answer within a quarter of an hour"
  return 1
}

# Types all lines of a block; `type_and_look NAME LINE` types one and waits for what a person would. What follows rests on
# a line, so that the first one that fails is the last.
type_block() {  # TITLE
  local line lines
  mapfile -t lines < <(lines_of "$1")
  verify "docs/launching.md has the lines" test ${#lines[@]} -gt 10
  for line in "${lines[@]}"; do
    verify "$line" type_and_look "${line%%$ *}" "${line#*$ }"
    [ "$failed" = 0 ] || return 0
  done
}
