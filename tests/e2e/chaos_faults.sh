# shellcheck shell=bash
# The faults of chaos.sh, which sources this: each says what it does and leaves behind how to undo it. A fault that
# cannot be now (its process is gone, its link is cut already) returns 1 and does nothing.

# chaos.sh reads what these set.
# shellcheck disable=SC2034
later() {  # MILLISECONDS COMMAND…
  now
  undo_at+=($((now_ms + $1)))
  undo_do+=("${*:2}")
}

undo_due() {  # [all]
  local i
  now
  for i in "${!undo_at[@]}"; do
    [ "${1:-}" = all ] || [ "$now_ms" -ge "${undo_at[$i]}" ] || continue
    ${undo_do[$i]}
    unset "undo_at[$i]" "undo_do[$i]"
  done
}

some_worker() { draw $workers; chosen=$((drawn + 1)); }
# How long a fault lasts: mostly short, at times longer than every limit of the protocol.
some_while() {
  draw 10
  case $drawn in
    0) draw 30000; while_ms=$((drawn + 10000)) ;;
    1 | 2 | 3) draw 9000; while_ms=$((drawn + 1000)) ;;
    *) draw 1500; while_ms=$((drawn + 5)) ;;
  esac
}
# No two faults of one kind on one thing at once: the first one's end would mend both.
take() { [ -z "${taken[$1]:-}" ] || return 1; taken[$1]=1; }
free() { unset "taken[$1]"; }
mended() { "${@:2}"; free "$1"; say "mended: ${*:2}"; }

kill_now() { killed[$1]=1; signal "$1" KILL || { unset "killed[$1]"; return 1; }; }
kill_worker() { some_worker; kill_now "worker-$chosen" && say "kill worker-$chosen"; }
kill_chief() {
  draw 3
  now
  [ $drawn != 0 ] || { draw 12000; chief_back_at=$((now_ms + drawn)); }
  kill_now chief && say "kill chief, back in $((chief_back_at > now_ms ? chief_back_at - now_ms : 0)) ms"
}
kill_all() {
  local name
  for name in "${!pid[@]}"; do kill_now "$name"; done
  say "kill everything"
}
term_worker() { some_worker; signal "worker-$chosen" TERM && say "SIGTERM worker-$chosen"; }
term_chief() { signal chief TERM && say "SIGTERM chief"; }

term_all() {
  local name
  for name in "${!pid[@]}"; do [[ $name == worker-* ]] && signal "$name" TERM; done
  say "SIGTERM every worker"
}

go_on() {  # NAME NUMBER
  kill -CONT "$2" 2>/dev/null
  unset "stopped[$1]"
}
stop_process() {
  some_while
  [ -z "${stopped[$1]:-}" ] && signal "$1" STOP || return 1
  stopped[$1]=1
  say "SIGSTOP $1 for $while_ms ms"
  later "$while_ms" go_on "$1" "${pid[$1]}"
}
stop_worker() { some_worker; stop_process "worker-$chosen"; }
stop_chief() { stop_process chief; }
# As when the machine below them is suspended.
stop_all() {
  local name length stopped_any=''
  some_while
  length=$while_ms
  for name in "${!pid[@]}"; do
    [ -z "${stopped[$name]:-}" ] && signal "$name" STOP || continue
    stopped[$name]=1 stopped_any=1
    later "$length" go_on "$name" "${pid[$name]}"
  done
  [ -n "$stopped_any" ] && say "SIGSTOP everything for $length ms"
}

isolate_host() {
  some_while
  take "port$1" || return 1
  isolate "$1"
  say "host $1 is cut off for $while_ms ms ($2)"
  later "$while_ms" mended "port$1" rejoin "$1"
}
isolate_worker() { some_worker; isolate_host "$chosen" "worker-$chosen"; }
isolate_chief() { isolate_host "${host_of[chief]}" chief; }
unplug_worker() {
  some_worker
  some_while
  take "port$chosen" || return 1
  unplug "$chosen"
  say "host $chosen is unplugged for $while_ms ms"
  later "$while_ms" mended "port$chosen" plug "$chosen"
}
one_way() {  # FROM TO MS
  take "way$1$2" || return 1
  drop_to "$1" "$2"
  later "$3" mended "way$1$2" deliver_to "$1" "$2"
}
two_workers() {
  some_worker
  other=$chosen
  while [ "$other" = "$chosen" ]; do some_worker; done
}
cut_pair() {
  two_workers
  some_while
  one_way "$chosen" "$other" "$while_ms"
  one_way "$other" "$chosen" "$while_ms"
  say "hosts $chosen and $other are cut for $while_ms ms"
}
cut_one_way() {
  two_workers
  draw 3
  [ "$drawn" != 0 ] || other=${host_of[chief]}
  some_while
  draw 2
  if [ "$drawn" = 0 ]; then one_way "$chosen" "$other" "$while_ms"; else one_way "$other" "$chosen" "$while_ms"; fi ||
    return 1
  say "one way of hosts $chosen and $other is cut for $while_ms ms"
}
flap() {
  local times=0 pause
  some_worker
  take "port$chosen" || return 1
  draw 12
  times=$((drawn + 2))
  say "host $chosen flaps $times times"
  while [ $times -gt 0 ]; do
    unplug "$chosen"
    draw 120
    pause=$drawn
    sleep "$(printf '0.%03d' $pause)"
    plug "$chosen"
    draw 120
    sleep "$(printf '0.%03d' $drawn)"
    times=$((times - 1))
  done
  free "port$chosen"
}
slow() {
  some_worker
  some_while
  take "rate$chosen" || return 1
  slow_down "$chosen" 20mbit
  say "host $chosen has 20 Mbit/s for $while_ms ms"
  later "$while_ms" mended "rate$chosen" speed_up "$chosen"
}
back_home() {  # HOST OLD NEW
  readdress "$@"
  address[$1]=$3
}
readdress_worker() {
  local home
  some_worker
  some_while
  take "address$chosen" || return 1
  home=$(host_address "$chosen")
  back_home "$chosen" "$home" "10.77.0.$((chosen + 100))"
  moved[worker-$chosen]=1
  say "host $chosen has another address for $while_ms ms"
  later "$while_ms" mended "address$chosen" back_home "$chosen" "10.77.0.$((chosen + 100))" "$home"
}
full_disk() {
  some_while
  take disk || return 1
  was_full=1
  dd if=/dev/zero of="$disk/fill" bs=64k 2>/dev/null
  say "the disk is full for $while_ms ms"
  later "$while_ms" mended disk rm -f "$disk/fill"
}
come_back() { unset "absent[$1]"; }
leave() {
  some_worker
  some_while
  [ -z "${absent[$chosen]:-}" ] && [ ${#absent[@]} -lt $((workers - 1)) ] || return 1
  absent[$chosen]=1
  draw 2
  if [ "$drawn" = 0 ]; then signal "worker-$chosen" TERM; else kill_now "worker-$chosen"; fi
  say "worker-$chosen leaves for $while_ms ms"
  later "$while_ms" come_back "$chosen"
}
choose_chief_host() { if [ "$chief_host" = 0 ]; then chief_host=5; else chief_host=0; fi; }
move_chief() {
  choose_chief_host
  draw 2
  if [ "$drawn" = 0 ]; then signal chief TERM; else kill_now chief; fi
  say "the chief moves to host $chief_host"
}
# The lock is gone, as on a storage without locks: only the term decides between the two.
second_chief() {
  take second || return 1
  if [ -n "${pid[old_chief]:-}" ] || ! signal chief STOP; then free second; return 1; fi
  some_while
  usurped=1
  rm -f "$dir/chief/lock"
  pid[old_chief]=${pid[chief]}
  unset "pid[chief]"
  later "$while_ms" mended second go_on old_chief "${pid[old_chief]}"
  [ "${host_of[chief]}" != "$spare_host" ] || choose_chief_host
  if [ "${host_of[chief]}" = "$spare_host" ]; then start_chief "$chief_host"; else start_chief "$spare_host"; fi
  say "the chief is stopped for $while_ms ms, and another one starts on host ${host_of[chief]} without a lock"
}

one_fault() {
  draw ${#faults[@]}
  case ${faults[$drawn]} in
    readdress) readdress_worker ;;
    *) ${faults[$drawn]} ;;
  esac && count=$((count + 1))
}
