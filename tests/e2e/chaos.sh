#!/usr/bin/env bash
# Random faults on real processes, each on a host of its own (network namespaces, tests/e2e/hosts.sh), round after round
# for some seconds. A round is a whole job: a chief and up to four workers, killed (SIGKILL), stopped (SIGSTOP, SIGCONT)
# and asked to leave (SIGTERM) at any time; hosts cut off, unplugged, cut from each other one way or both, flapping,
# slow or with a new address; the job's disk full; the chief started again on another host; a second chief that takes
# over while the first one is stopped and the directory's lock is gone. When the faults end everything is mended.
#
#   tests/e2e/chaos.sh SECONDS [SEED]       rounds until SECONDS have passed; one round at least
#     --lockstep PATH   the program (default: bazel-bin/deploy/cli/lockstep)
#     --faults LIST     only these, as kill_worker,cut_pair (default: all; --list names them)
#     --steps N         how long a round's job is (default: 3000): on a slow machine a round of that many takes long
#     --job PATH        the job to play (default: deploy/jobs/fashion_mnist_short.yaml)
#     --round SECONDS   how long faults come in a round, at most (default: 65, at least 15)
#     --keep DIR        where rounds that fail are kept (default: chaos.SEED in the folder for temporary files): logs,
#                       records, the job's directory, the journal, a dump of every process, the settings
#
# A round fails when the job makes no step for longer than docs/guarantees.md (11) allows after all is mended, ends with
# another digest than the undisturbed run on one worker, when any process ends with a code that is no consequence of a
# fault, when chiefs commit out of turn, or when generations follow each other without a step between them. Time in
# which the job waits for a processor does not count; a machine that gives it none for half an hour leaves a round
# unjudged, which counts as skipped. The seed gives the same draws again, not the same timing.
# The last line is `N passed, N failed[, N skipped]`, counted in rounds. Exit 0 only if nothing failed; 64: usage.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/e2e/hosts.sh
source "$here/hosts.sh"
# shellcheck source=tests/e2e/chaos_faults.sh
source "$here/chaos_faults.sh"
# shellcheck source=tests/e2e/chaos_judge.sh
source "$here/chaos_judge.sh"

all_faults=(kill_worker kill_worker kill_chief kill_chief kill_all term_worker term_chief term_all stop_worker
  stop_worker stop_chief stop_all isolate_worker isolate_chief unplug_worker cut_pair cut_pair cut_one_way flap slow
  readdress full_disk leave move_chief second_chief)
lockstep=bazel-bin/deploy/cli/lockstep job=deploy/jobs/fashion_mnist_short.yaml keep='' steps=3000 most_faults_s=65
positional=()
faults=("${all_faults[@]}")
words=("$@")
while [ $# -gt 0 ]; do
  case "$1" in
    --lockstep) lockstep=${2:?--lockstep needs a path}; shift ;;
    --job) job=${2:?--job needs a path}; shift ;;
    --faults) IFS=, read -ra faults <<<"${2:?--faults needs a list}"; shift ;;
    --steps) steps=${2:?--steps needs a number}; shift ;;
    --round) most_faults_s=${2:?--round needs a number}; shift ;;
    --keep) keep=${2:?--keep needs a directory}; shift ;;
    --list) printf '%s\n' "${all_faults[@]}" | sort -u; exit 0 ;;
    -*) echo "chaos.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
    *) positional+=("$1") ;;
  esac
  shift
done
seconds=${positional[0]:?SECONDS is missing (see the head of the file)}
seed=${positional[1]:-$((($(date +%s) + $$) % 32768))}
for fault in "${faults[@]}"; do
  [[ " ${all_faults[*]} " == *" $fault "* ]] || { echo "chaos.sh: unknown fault '$fault' (--list)" >&2; exit 64; }
done
[ -x "$lockstep" ] || { echo "chaos.sh: no program at $lockstep; build //deploy/cli:lockstep" >&2; exit 64; }
if ! enter_own_network "${words[@]}"; then
  echo "network namespaces are not allowed here, so nothing ran"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi

# docs/guarantees.md (11): within so many seconds a step is made, once all is mended. Beyond it a round is broken; after
# `most_patience` on a machine that has no processor to give, it is not judged.
readonly patience=500 most_patience=1800 most_in_a_row=100
readonly hosts=7 spare_host=6 workers=4 disk_mib=24
keep=${keep:-${TMPDIR:-/tmp}/chaos.$seed}
root=$(mktemp -d)
disk=$root/disk dir=$root/disk/job
# All hosts have one file system here: beside the chief's own file of its address a worker would find the socket for the
# chief's host, which passes every cut.
address_file=$root/address
ln -s "$dir/chief/address" "$address_file"
mkdir "$disk"
mount -t tmpfs -o "size=${disk_mib}m" chaos "$disk" || { echo "chaos.sh: cannot mount a tmpfs" >&2; exit 64; }
RANDOM=$seed
declare -A pid=() host_of=() address=() absent=() stopped=()
undo_at=() undo_do=()
declare -A waited_before=()
passed=0 failed=0 skipped=0 round=0 total_faults=0 most_generations=0

# Draws a number below $1 into `drawn`. No subshell: that would have draws of its own.
draw() { drawn=$(((RANDOM * 32768 + RANDOM) % $1)); }
now() { now_ms=$((${EPOCHREALTIME/./} / 1000)); }
say() { printf '%(%T)T %s\n' -1 "$*" | tee -a "$root/journal" >&2; }
# The shell tells of every child that is killed; that is said already.
exec 2> >(grep --line-buffered -v ' Killed  ' >&2)

# ---- processes

sets() { printf -- '--set\n%s\n' "${settings[@]}"; }

start_chief() {  # HOST; the log's name tells which life it is
  lives=$((lives + 1))
  host_of[chief]=$1
  local set
  mapfile -t set < <(sets)
  in_host "$1" "$lockstep" chief "$job" --dir "$dir" --listen "$(host_address "$1"):0" --expected-workers 3 \
    --record "$root/records" "${set[@]}" >"$root/log/chief-$lives" 2>&1 &
  pid[chief]=$!
  await_start chief
}

start_worker() {  # NUMBER: on the host of the same number
  lives=$((lives + 1))
  in_host "$1" "$lockstep" worker --chief-file "$address_file" --token-file "$dir/chief/token" \
    --name "worker-$1" --peer-host "${address[$1]}" --record "$root/records" >"$root/log/worker-$1-$lives" 2>&1 &
  pid[worker-$1]=$!
  await_start "worker-$1"
}

await_start() {  # NAME: until the child is the program
  while alive "$1" && [[ $(cat "/proc/${pid[$1]}/comm" 2>/dev/null) != lockstep* ]]; do sleep 0.005; done
}

# A child that lives: the number of one that has ended may be another's by now.
alive() {  # NAME
  local stat
  [ -n "${pid[$1]:-}" ] || return 1
  { read -r stat <"/proc/${pid[$1]}/stat"; } 2>/dev/null || return 1
  # shellcheck disable=SC2086  # fields
  set -- ${stat##*) }
  [ "$1" != Z ] && [ "$2" = $$ ]
}

signal() {  # NAME SIGNAL: false when there is no such process
  alive "$1" || return 1
  kill "-$2" "${pid[$1]}" 2>/dev/null
}

# Notes who has ended. Sets `done_at` when the chief ended with 0.
reap() {
  local name code
  for name in "${!pid[@]}"; do
    alive "$name" && continue
    wait "${pid[$name]}" 2>/dev/null
    code=$?
    unset "pid[$name]" "stopped[$name]"
    expected_end "$name" "$code" || fail "$name ended with code $code"
    unset "killed[$name]"
    if [ "$name" = chief ] && [ "$code" = 0 ]; then
      now
      job_done=1 home_at=$((now_ms + 5000))
    fi
    [ "$code" = 137 ] || say "$name ended with $code"
  done
}

# Starts what is missing and meant to be there.
restart_missing() {
  local number
  if [ -z "${pid[chief]:-}" ] && [ -z "$job_done" ]; then
    now
    [ "$now_ms" -lt "$chief_back_at" ] || start_chief "$chief_host"
  fi
  [ -e "$dir/chief/token" ] || return 0
  for ((number = 1; number <= workers; number++)); do
    if [ -z "${pid[worker-$number]:-}${absent[$number]:-}" ]; then start_worker "$number"; fi
  done
}

# Workers that did not hear of the end wait for a chief: whoever started them ends them, as `lockstep run` does.
send_home() {
  local name
  [ -z "$sent_home" ] || return 0
  now
  [ "$now_ms" -ge "$home_at" ] || return 0
  sent_home=1
  for name in "${!pid[@]}"; do signal "$name" TERM && say "$name is sent home"; done
}

# ---- rounds

# How often the job began to step, in all lives of its chief.
count_begun() { begun=$(cat "$root"/log/chief-* 2>/dev/null | grep -cE ' steps from |goes on under term'); }

# Faults come in bursts, or one by one, when the job has stepped for a moment since the last one.
plan_next_fault() {
  now
  draw 3
  if [ "$drawn" = 0 ]; then
    draw 800
    fault_at=$((now_ms + drawn)) fault_waits_until=0
  else
    draw 2500
    fault_pause=$drawn fault_at='' fault_waits_until=$((now_ms + 12000)) look_at=0
    count_begun
    begun_before=$begun
  fi
}

fault_is_due() {
  if [ -z "$fault_at" ] && [ "$now_ms" -ge "$look_at" ]; then
    look_at=$((now_ms + 300))
    count_begun
    if [ "$begun" -gt "$begun_before" ] || [ "$now_ms" -ge "$fault_waits_until" ]; then
      fault_at=$((now_ms + fault_pause))
    fi
  fi
  [ -n "$fault_at" ] && [ "$now_ms" -ge "$fault_at" ]
}

choose_settings() {
  local data=/usr/share/datasets/fashion-mnist
  draw 3
  variant=$drawn
  settings=("data.train.inputs=$data/t10k-images-idx3-ubyte.gz" "data.train.labels=$data/t10k-labels-idx1-ubyte.gz"
    train.global_batch_size=16)
  case $variant in
    0) settings+=("checkpoint={every: 200steps, keep_latest: 3}" "train.duration=${steps}steps") ;;
    1)
      settings+=("checkpoint={every: 10steps, keep_latest: 2}" train.ema.decay=0.99
        "train.duration=$((steps * 2 / 3))steps")
      ;;
    2)
      settings+=("checkpoint={every: 150steps, keep_latest: 1, keep_best: true}" "train.duration=$((steps / 2))steps"
        "data.eval={inputs: $data/t10k-images-idx3-ubyte.gz, labels: $data/t10k-labels-idx1-ubyte.gz}"
        "eval={every: $((steps / 6))steps, metric: loss}")
      ;;
  esac
}

undisturbed() {  # The digest of this variant on one worker, once; with the best state where one is kept.
  local set
  [ -z "${digest[$variant]:-}" ] || return 0
  mapfile -t set < <(sets)
  "$lockstep" run "$job" --workers 1 --dir "$root/undisturbed" "${set[@]}" >"$root/undisturbed.log" 2>&1 ||
    { cat "$root/undisturbed.log" >&2; exit 1; }
  digest[$variant]=$(result_of "$root/undisturbed")
  rm -rf "$root/undisturbed"
}

play_round() {
  local until number
  round=$((round + 1)) count=0 lives=0 broken='' job_done='' usurped='' was_full='' unjudged='' generations=''
  chief_host=0 chief_back_at=0 sent_home='' home_at=0
  pid=() stopped=() absent=() undo_at=() undo_do=()
  declare -gA killed=() taken=() moved=()
  rm -rf "$dir" "$root/log" "$root/records" "$root/journal" "$disk/fill"
  mkdir "$root/log" "$root/records"
  choose_settings
  undisturbed
  for ((number = 1; number <= workers; number++)); do address[$number]=$(host_address "$number"); done
  draw $((most_faults_s - 14))
  say "round $round, variant $variant, faults for $((drawn + 15)) s"
  now
  until=$((now_ms + (drawn + 15) * 1000))
  plan_next_fault
  start_chief 0
  while [ ! -s "$dir/chief/address" ] && alive chief; do sleep 0.02; done

  while [ "$now_ms" -lt "$until" ] && [ -z "$job_done" ] && [ -z "$broken" ]; do
    undo_due
    reap
    restart_missing
    if fault_is_due; then one_fault; plan_next_fault; fi
    sleep 0.02
    now
  done
  undo_due all
  absent=() chief_back_at=0
  [ -n "$job_done" ] || say "all is mended"

  now
  newest='' stood_ms=0 looked_at=$now_ms progress_at=$now_ms look_at=0
  until [ -n "$broken" ] || { [ -n "$job_done" ] && [ ${#pid[@]} = 0 ]; }; do
    reap
    if [ -n "$job_done" ]; then send_home; else restart_missing; fi
    sleep 0.02
    now
    [ "$now_ms" -lt "$look_at" ] || look_for_progress
  done
  [ -n "$broken" ] || judge
  total_faults=$((total_faults + count))
  count_begun
  say "round $round: $count faults, ${generations:-0} generations, the job began to step $begun times"
  end_round
}

# A child that is asked to end before it has become another program is still this script.
clean_up() {
  [ "$BASHPID" = $$ ] || return
  kill -KILL "${pid[@]}" 2>/dev/null
  drop_hosts
  umount -l "$disk"
  rm -rf "$root"
}

declare -A digest=()
trap clean_up EXIT
trap 'exit 130' INT TERM
echo "chaos: seed $seed, $seconds s"
make_hosts $hosts
end=$((SECONDS + seconds))
while :; do
  play_round
  [ "$SECONDS" -lt "$end" ] || break
done
echo "chaos: seed $seed, $total_faults faults in $round rounds, at most $most_generations generations in one"
line="$passed passed, $failed failed"
[ "$skipped" = 0 ] || line="$line, $skipped skipped"
echo "$line"
[ "$failed" = 0 ]
