#!/usr/bin/env bash
# Lockstep on a real Slurm of virtual nodes (slurm_cluster.sh), hit by what Slurm does to jobs in life: steps that are
# cancelled, preemption, time limits, nodes that die, workers that come and go, a job that is wrong. Every job that goes
# on has to end COMPLETED, with the digest of an undisturbed run. Installs Slurm where it is missing; needs root.
#   --lockstep PATH   the program (default: bazel-bin/deploy/cli/lockstep)
#   --only WORD       only the tests of this name: plain, step, memory, preemption, time, growth, node, end, array, bad,
#                     walkthrough, which types what docs/launching.md has for Slurm, line by line
#   --keep DIR        where the cluster's and the jobs' files go, and stay (default: a folder that is removed)
# The last line is `N passed, N failed`. Exit 0 only if nothing failed; 64: usage; 70: Slurm does not start; 78: not root.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
# shellcheck source=tests/cluster/slurm_cluster.sh
source "$here/slurm_cluster.sh"
# shellcheck source=tests/cluster/typed_lines.sh
source "$here/typed_lines.sh"

lockstep=$top/bazel-bin/deploy/cli/lockstep only='' keep=''
words=("$@")
while [ $# -gt 0 ]; do
  case "$1" in
    --lockstep) lockstep=$(realpath "${2:?--lockstep needs a path}"); shift ;;
    --only) only=${2:?--only needs a word}; shift ;;
    --keep) keep=$(realpath -m "${2:?--keep needs a folder}"); shift ;;
    *) echo "slurm.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
[ -x "$lockstep" ] || { echo "slurm.sh: no program at $lockstep; build //deploy/cli:lockstep" >&2; exit 64; }
lockstep=$(realpath "$lockstep")  # as its processes show it
[ "$(id -u)" = 0 ] || { echo "slurm.sh: run it as root: Slurm starts jobs for other users" >&2; exit 78; }
[ -n "${LOCKSTEP_CLUSTER_TEST:-}" ] || "$top/deploy/packages.sh" data slurm
enter_own_cluster "${words[@]}"

passed=0 failed=0 extra=() job='' dir='' name=''
root=${keep:-$(mktemp -d)}
mkdir -p "$root/jobs"
trap 'cluster_down; [ -n "$keep" ] || rm -rf "$root"' EXIT
trap 'exit 130' INT TERM
data=/usr/share/datasets/fashion-mnist
settings=(--set "data.train.inputs=$data/t10k-images-idx3-ubyte.gz" --set "data.train.labels=$data/t10k-labels-idx1-ubyte.gz"
  --set train.global_batch_size=16 --set "checkpoint={every: 200steps, keep_latest: 3}")

verify() {  # WHAT COMMAND…: it passes when the command ends with 0.
  local what=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    echo "ok      $what"
    return 0
  fi
  failed=$((failed + 1))
  echo "FAILED  $what"
  [ ! -f "$root/jobs/$name.out" ] || tail -n 30 "$root/jobs/$name.out" | sed 's/^/        /'
}

equal() { [ "$1" = "$2" ] || { echo "        expected '$2', found '$1'"; return 1; }; }

# Submits a job of this name in a directory of the same name; sets `job` and `dir`.
submit() {  # NAME WORKERS OPTION-OF-SBATCH… ; `extra` holds more settings
  name=$1 dir=$root/jobs/$1
  "$lockstep" slurm submit "$top/deploy/jobs/fashion_mnist_short.yaml" --workers "$2" --dir "$dir" "${settings[@]}" \
    "${extra[@]}" -- --output="$dir.out" "${@:3}" >"$dir.submitted"
  job=$(sed -n 's/^job \([0-9]*\):.*/\1/p' "$dir.submitted")
}

state() { squeue --noheader --states=all --jobs "$1" --format %T; }
field() { scontrol show job "$1" | grep -oE "\b$2=[^ ]+" | cut -d= -f2; }
has_state() { [ "$(state "$1")" = "$2" ]; }
at_step() { [ "$("$lockstep" status --dir "$dir" --json | grep -oE '"step": ?[0-9]+' | head -n 1 | grep -oE '[0-9]+')" -ge "$1" ]; }
members() { "$lockstep" status --dir "$dir" --json | grep -cE '"state": ?"(member|straggler)"'; }
has_members() { [ "$(members)" = "$1" ]; }
said() { grep -qE "$1" "$dir.out"; }
await() { cluster_await "$@" || { echo "        not within $1 s: ${*:2}"; return 1; }; }
digest() { "$lockstep" checkpoint digest "$1" 2>&1 || true; }

# It is over, as Slurm and the digest tell.
completes() {
  local until=$((SECONDS + 150))
  while [[ $(state "$job") == @(PENDING|RUNNING|COMPLETING) ]] && [ "$SECONDS" -lt "$until" ]; do sleep 0.2; done
  equal "$(state "$job")" COMPLETED || return 1
  equal "$(digest "$dir")" "$wanted"
}

has_restarts() { [ "$(field "$job" Restarts)" -ge 1 ]; }
restarts() { equal "$(field "$job" Restarts)" "$1"; }

# At which step the chief of a term began.
begins_at() { sed -n "s/.*chief: term $1, listening on .*, from step \([0-9]*\).*/\1/p" "$dir.out"; }

# The worker processes of node N. A process of a node has its name in its environment.
workers_on() {  # N
  local process
  for process in $(pgrep -f "^$lockstep worker "); do
    if grep -qzx "SLURMD_NODENAME=n$1" "/proc/$process/environ" 2>/dev/null; then echo "$process"; fi
  done
}

test_plain() {
  submit plain 3
  verify "plain: a submitted job ends COMPLETED, with the undisturbed digest" completes
  verify "plain: the chief is reached by its node's name" said 'chief: term 1, listening on n1:'
  verify "plain: workers are named by node and number" said '1\.1: (n1-0|n2-1|n3-2), (n1-0|n2-1|n3-2), (n1-0|n2-1|n3-2) at step 0'
  verify "plain: it ran once" restarts 0
}

test_step() {
  submit step 3
  verify "step: it steps" await 60 at_step 200
  kill -KILL "$(workers_on 2)"
  verify "step: a worker that is killed is started again where it was" await 30 said 'n2-1.*(lost|session ended|reset)'
  verify "step: all are members again" await 30 has_members 3
  scancel "$job.0"
  verify "step: a step that is cancelled is started again" await 30 said "the workers' step ended.*started again"
  verify "step: and the job ends as if undisturbed" completes
  verify "step: in one run" restarts 0
}

# The limit of the workers on node 2 is set 64 MiB above what they use, and a program that takes 96 MiB is put beside them. The
# kernel has to kill one of them; it is told to prefer the worker.
meets_its_limit() {
  local pid group
  pid=$(workers_on 2)
  group=/sys/fs/cgroup/memory$(awk -F: '$2 == "memory" { print $3 }' "/proc/$pid/cgroup")
  [[ $group == */job_* ]] || { echo "        Slurm has put $pid into no group of its own: $group"; return 1; }
  echo $(($(cat "$group/memory.usage_in_bytes") + (64 << 20))) >"$group/memory.limit_in_bytes"
  echo 1000 >"/proc/$pid/oom_score_adj"
  { (echo "$BASHPID" >"$group/cgroup.procs" && exec tail -c 96M < <(head -c 96M /dev/zero)) || true; } >/dev/null 2>&1
  ! kill -0 "$pid" 2>/dev/null || { echo "        the kernel did not kill $pid"; return 1; }
}

test_memory() {
  [ -d /sys/fs/cgroup/memory ] || { echo "SKIPPED: memory: control groups of version 1 are not mounted here"; return 0; }
  submit memory 3 --mem=2G
  verify "memory: it steps" await 60 at_step 200
  verify "memory: a worker that meets its node's limit is killed" meets_its_limit
  verify "memory: it is started again where it was" await 30 said 'n2-1.*(lost|session ended|reset)'
  verify "memory: all are members again" await 30 has_members 3
  verify "memory: and the job ends as if undisturbed" completes
  verify "memory: in one run" restarts 0
}

test_preemption() {
  submit preemption 3
  verify "preemption: it steps" await 60 at_step 200
  sbatch --parsable --partition=urgent --nodes=4 --output=/dev/null --wrap='sleep 1' >/dev/null
  verify "preemption: it gives its nodes away and is queued again" await 60 has_state "$job" PENDING
  verify "preemption: it goes on and ends as if undisturbed" completes
  verify "preemption: from the step that it had reached" equal "$(begins_at 2)" "$(sed -n 's/^stopped at step \([0-9]*\);.*/\1/p' "$dir.out")"
  verify "preemption: in a second run" restarts 1
}

# Lets the workers of node N run a tenth of the time only, so that no machine is too fast for what is to come. The
# others wait for them. Until `at_full_speed`.
slowly() {  # N
  slowed=$dir.slow
  touch "$slowed"
  slow_down "$1" "$slowed" &
}
slow_down() {  # N FILE
  local worker
  while [ -e "$2" ]; do
    for worker in $(workers_on "$1"); do
      kill -STOP "$worker" 2>/dev/null || continue
      sleep 0.9
      kill -CONT "$worker" 2>/dev/null || true
    done
    sleep 0.1
  done
}
at_full_speed() { rm -f "$slowed"; }

# With 45 s of two minutes still to go, or with up to a minute more, the batch script is told, and saves.
begin_time() {
  submit time 1 --time=2 --signal=B:TERM@45 --nodelist=n4
  verify "time: it steps" await 60 at_step 200
  slowly 4
  time_slowed=$slowed
}
end_time() {
  name=time dir=$root/jobs/time slowed=$time_slowed
  verify "time: it is told before its time is over" await 120 said 'stop requested'
  at_full_speed
  verify "time: a job whose time is nearly over is queued again until it is done" completes
  verify "time: it said so" said 'queued again'
  verify "time: in further runs" has_restarts
}

test_growth() {
  local more
  submit growth 1
  verify "growth: it steps on one node" await 60 at_step 200
  slowly "$(scontrol show job "$job" | sed -n 's/^ *NodeList=n//p')"
  more=$("$lockstep" slurm join "$dir" --workers 2 -- --output="$dir.join.out" | sed -n 's/^job \([0-9]*\):.*/\1/p')
  verify "growth: workers of a second job join" await 60 has_members 3
  scancel "$more"
  verify "growth: they leave when it is cancelled" await 30 has_members 1
  at_full_speed
  verify "growth: at a step, without anything lost" await 30 said '(n2-0|n2-1|n3-1): it left: its state is not needed'
  verify "growth: the job ends as if undisturbed" completes
}

test_node() {
  submit node 3
  verify "node: it steps" await 60 at_step 200
  slowly 3
  node_lost 2
  verify "node: it goes on without a node that died" await 60 has_members 2
  node_lost 1
  verify "node: without its first node it is queued again" await 90 has_restarts
  at_full_speed
  node_up 1
  node_up 2
  verify "node: it goes on elsewhere and ends as if undisturbed" completes
}

test_end() {
  submit end 2
  verify "end: it steps" await 60 at_step 200
  "$lockstep" stop --dir "$dir" >/dev/null
  verify "end: a job that is stopped is COMPLETED" await 30 has_state "$job" COMPLETED
  submit end 2
  verify "end: submitted again it goes on" await 60 at_step 500
  scancel "$job"
  verify "end: a cancelled job is not queued again" await 30 has_state "$job" CANCELLED
  submit end 3
  verify "end: and goes on when it is submitted again, as if undisturbed" completes
  verify "end: from what was saved" sh -c "[ $(begins_at 3) -ge 500 ]"
}

test_array() {
  local task one two
  extra=(--set train.seed=%a --set train.duration=300steps)
  submit array-%a 1 --array=0-1
  extra=()
  for task in 0 1; do
    job=${job}_$task
    verify "array: task $task is done" await 60 has_state "$job" COMPLETED
    job=${job%_*}
  done
  one=$(digest "$root/jobs/array-0") two=$(digest "$root/jobs/array-1")
  undisturbed array 300 --set train.seed=1
  verify "array: each has a directory and settings of its own" equal "$two" "$(digest "$root/jobs/array")"
  verify "array: which differ" sh -c "[ '$one' != '$two' ]"
}

test_bad() {
  extra=(--set "data.train.inputs=$root/no-such-file")
  submit bad 2
  extra=()
  verify "bad: a job without data fails" await 60 has_state "$job" FAILED
  verify "bad: with the code that says why" equal "$(field "$job" ExitCode)" 65:0
  verify "bad: once" restarts 0
  verify "bad: mistakes of the job file are told before it is queued" equal \
    "$("$lockstep" slurm submit "$top/deploy/jobs/fashion_mnist_short.yaml" --workers 1 --set train.seed=x >/dev/null 2>&1; echo $?)" 78
}

# ---- What a person types at a login node. The nodes share the home, and the job file is there.
test_walkthrough() {
  local home=$root/home walked
  undisturbed walked $((steps * 3))
  walked=$(digest "$root/jobs/walked")
  mkdir -p "$home/bin"
  ln -s "$lockstep" "$home/bin/lockstep"
  sed -e "s|/usr/share/datasets/fashion-mnist/train|$data/t10k|; s/batch_size: .*/batch_size: 16/" -e \
    "s/every: 10steps/every: 200steps/; s/duration: .*/duration: $((steps * 3))steps/" \
    "$top/deploy/jobs/fashion_mnist_short.yaml" >"$home/mnist.yaml"
  name=walkthrough dir=$home/runs/mnist
  open_shell login "$root/login.log" env HOME="$home" PATH="$home/bin:$PATH" bash --norc -c 'cd && exec bash --norc'
  type_block Slurm
  verify "walkthrough: the job was queued again" grep -q 'queued again' "$home/mnist.log"
  verify "walkthrough: and stopped, and done" grep -q "^done at step $((steps * 3))" "$home/mnist.log"
  verify "walkthrough: the weights are there" test -s "$home/mnist.safetensors"
  verify "walkthrough: the digest is that of an undisturbed run" equal "$(digest "$dir")" "$walked"
}
walks() { [ "$(squeue --noheader --name=mnist --format %T | tail -n 1)" = "$1" ]; }

# What a person sees before the next line is typed.
type_and_look() {  # NAME LINE
  type_line "$1" "$2" >"$root/typed" || { tail -n 20 "$root/typed"; return 1; }
  case "$2" in
    'lockstep slurm submit '*) await 60 walks RUNNING && await 60 has_members 3 ;;
    'lockstep slurm join '*) await 60 has_members 4 ;;
    'scancel --name=more') await 30 has_members 3 ;;
    'scancel --batch '*) await 60 walks PENDING ;;
    'squeue '*%r*) await 120 walks RUNNING && await 60 has_members 3 ;;
    'lockstep stop '*) await 60 walks '' ;;
  esac
}

# The job on one worker that nobody disturbs; sets `milliseconds`.
undisturbed() {  # NAME STEPS MORE-SETTINGS…
  local begin=$EPOCHREALTIME
  "$lockstep" run "$top/deploy/jobs/fashion_mnist_short.yaml" --workers 1 --dir "$root/jobs/$1" "${settings[@]}" \
    --set "train.duration=$2steps" "${@:3}" >"$root/jobs/$1.log" 2>&1 || { tail -n 20 "$root/jobs/$1.log" >&2; exit 70; }
  milliseconds=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
}

cluster_up "$root/cluster" 4
# As many steps as one worker makes in 15 s, however fast the machine is.
undisturbed pace 600
steps=$((600 * 15000 / milliseconds))
steps=$((steps < 2000 ? 2000 : steps > 12000 ? 12000 : steps))
undisturbed undisturbed "$steps"
wanted=$(digest "$root/jobs/undisturbed")
settings+=(--set "train.duration=${steps}steps")
echo "jobs of $steps steps"
wants() { [ -z "$only" ] || [ "$only" = "$1" ]; }
if wants time; then begin_time; time_job=$job; fi
for test in plain step memory preemption growth node end array bad walkthrough; do
  if wants $test; then "test_$test"; fi
done
if wants time; then job=$time_job; end_time; fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
