# shellcheck shell=bash
# What chaos.sh, which sources this, takes for a failure, and what it keeps of one.

# chaos.sh reads what these set.
# shellcheck disable=SC2034

# What a process may end with while it is disturbed: done, killed, preempted (by the signal itself where it had not
# begun to listen), unreachable chief.
expected_end() {  # NAME CODE
  case "$2" in
    0 | 143) return 0 ;;
    137) [ -n "${killed[$1]:-}" ] ;;
    69) [[ $1 == worker-* ]] ;;
    # A chief that starts while its disk is full gives up in the end, as it says.
    74) [ -n "${was_full:-}" ] && [[ $1 == *chief ]] ;;
    75) return 0 ;;
    76) [ -n "${usurped:-}" ] && [[ $1 == *chief ]] ;;
    # The lock is held again, by either of two chiefs, as long as the older one has not noticed that it is; or it was to
    # listen on an address that had just gone.
    78) [ "$1" = old_chief ] || [ -n "${moved[$1]:-}" ] || { [ "$1" = chief ] && [ -n "${pid[old_chief]:-}" ]; } ;;
    *) return 1 ;;
  esac
}

fail() {
  say "FAILED: $*"
  broken=1
}

# How long one thread of the job, the unluckiest, has waited for a processor since the last call: `starved_ms`. On a
# machine that is busy with other things that time says nothing about the job.
measure_starvation() {
  local name file waited most=0
  local -A now_waited=()
  for name in "${!pid[@]}"; do
    for file in /proc/"${pid[$name]}"/task/*/schedstat; do
      { read -r _ waited _ <"$file"; } 2>/dev/null || continue
      now_waited[$file]=$waited
      waited=$((waited - ${waited_before[$file]:-$waited}))
      [ "$waited" -le "$most" ] || most=$waited
    done
  done
  waited_before=()
  for file in "${!now_waited[@]}"; do waited_before[$file]=${now_waited[$file]}; done
  starved_ms=$((most / 1000000))
}

# Adds to `stood_ms` the time in which the job stood still although each of its threads had a processor when it wanted
# one. Any progress sets it back.
look_for_progress() {
  local seen since=$looked_at
  now
  looked_at=$now_ms look_at=$((now_ms + 1000))
  measure_starvation
  if [ -n "$job_done" ]; then
    seen="done, ${#pid[@]} left"
  else
    seen=$(cat "$root"/log/chief-* | grep -oE '^(step|saved step) [0-9]+' | grep -oE '[0-9]+$' | sort -n | tail -n 1)
  fi
  if [ "$seen" != "$newest" ]; then
    newest=$seen stood_ms=0 progress_at=$now_ms
  elif [ "$starved_ms" -lt $((now_ms - since)) ]; then
    stood_ms=$((stood_ms + now_ms - since - starved_ms))
  fi
  [ "$stood_ms" -lt $((patience * 1000)) ] ||
    fail "no step for $(((now_ms - progress_at) / 1000)) s although all is mended; still there: ${!pid[*]}"
  if [ -z "$broken" ] && [ $((now_ms - progress_at)) -gt $((most_patience * 1000)) ]; then
    say "given up: this machine is too busy to judge the round"
    broken=1 unjudged=1
  fi
}

result_of() {
  "$lockstep" checkpoint digest "$1" 2>&1
  cat "$1/best" 2>/dev/null
}

# Every manifest that is there was published by a chief of the same term as the one before it, or of a later one.
terms_in_order() {
  grep -ho '"term": *[0-9]*' "$dir"/checkpoints/step-*/manifest.json 2>/dev/null | grep -o '[0-9]*$' |
    sort -nc 2>/dev/null
}

# All generations that were formed: their number, and the longest row of them at one and the same step.
count_generations() {
  local step row=0 before=''
  generations=0 longest_row=0
  while read -r step; do
    generations=$((generations + 1))
    if [ "$step" = "$before" ]; then row=$((row + 1)); else row=1; fi
    before=$step
    [ "$row" -le "$longest_row" ] || longest_row=$row
  done < <(cat $(ls -v "$root"/log/chief-*) |
    sed -nE 's/.*generation [0-9]+\.[0-9]+: [^:]* at (step [0-9]+( \+ [0-9]+)?).*/\1/p')
}

judge() {
  [ "$(result_of "$dir")" = "${digest[$variant]}" ] || fail "the digest is another one than undisturbed"
  terms_in_order || fail "a chief of an older term committed after one of a newer term"
  count_generations
  [ "$generations" -le "$most_generations" ] || most_generations=$generations
  [ "$longest_row" -le "$most_in_a_row" ] || fail "$longest_row generations in a row without a step between them"
  ! grep -hE 'must hold|broken invariant|alarm|differs from' "$root"/log/* | head -n 3 | grep . ||
    fail "a process says so itself (the lines above)"
}

# Before anything is killed: what each process does, with its stacks, and what its hosts look like.
keep_evidence() {  # DIRECTORY
  local name
  for name in "${!pid[@]}"; do
    echo "$name: process ${pid[$name]}, host ${host_of[$name]:-${name#worker-}}"
  done >"$1/processes"
  [ ${#pid[@]} -eq 0 ] || timeout 60 "$lockstep" dump "${pid[@]}" >"$1/dump" 2>&1
  { df "$disk"; ls -laR "$disk"; ip -s link; uptime; cat /proc/pressure/* 2>/dev/null; } >"$1/machine" 2>&1
  printf '%s\n' "seed $seed" "round $round" "variant $variant" "lockstep $lockstep" "${settings[@]}" >"$1/round"
}

end_round() {
  local name
  if [ -n "$broken" ]; then
    mkdir -p "$keep/round-$round"
    keep_evidence "$keep/round-$round"
  fi
  for name in "${!pid[@]}"; do kill -KILL "${pid[$name]}" 2>/dev/null; wait "${pid[$name]}" 2>/dev/null; done
  if [ -z "$broken" ]; then
    passed=$((passed + 1))
    return
  fi
  if [ -n "$unjudged" ]; then skipped=$((skipped + 1)); else failed=$((failed + 1)); fi
  cp -r "$root/log" "$root/records" "$root/journal" "$root/undisturbed.log" "$keep/round-$round/"
  cp -r "$dir" "$keep/round-$round/job"
  say "everything is in $keep/round-$round"
}
