#!/usr/bin/env bash
# The tests that need a GPU, inside the bundle that bundle.sh makes: kernels against the reference and against host
# execution, who serves products, convolutions and attention, models trained on one and two ranks, kills, digests,
# limits of memory. Ends with a table, then `N passed, N failed`; exit 0 only if nothing failed, 78 where there is no
# GPU to test.
#   --gpu N        which one (0)                --only PATTERN   only rows whose name contains PATTERN
#   --dir DIR      where logs and runs are kept (a fresh folder below /tmp, removed when all passed)
# The libraries of CUDA 13 come from LD_LIBRARY_PATH, Python's nvidia packages (PYTHON names the interpreter) or the
# toolkit; see cuda_env.sh. Two ranks share the GPU; where there are several, they also get one each.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

gpu=0 only='' dir=''
while [ $# -gt 0 ]; do
  case "$1" in
    --gpu) gpu=${2:?--gpu needs a number}; shift ;;
    --only) only=${2:?--only needs a pattern}; shift ;;
    --dir) dir=${2:?--dir needs a folder}; shift ;;
    *) echo "run.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done

# shellcheck source=cuda_env.sh
. "$here/cuda_env.sh"
find_cuda_libraries "$here"
# shellcheck source=served.sh
. "$here/served.sh"
export LOCKSTEP_TEST_GPU=$gpu
run() { LD_LIBRARY_PATH=$lockstep_path "$here/libexec/$1" "${@:2}"; }

machine=$(run lockstep check --machine)
echo "$machine"
for file in "${cuda_missing[@]}"; do
  echo "warn  $file: not in LD_LIBRARY_PATH, Python's nvidia packages or a toolkit"
done
if ! grep -q "^ok    gpu $gpu " <<<"$machine"; then
  echo "run.sh: GPU $gpu cannot be used; the lines above say why" >&2
  exit 78
fi

gpus=$(grep -c '^ok    gpu ' <<<"$machine")

keep=1
if [ -z "$dir" ]; then dir=$(mktemp -d /tmp/lockstep-gpu-XXXXXX) keep=0; fi
mkdir -p "$dir"
passed=0 failed=0 table=()

row() {  # VERDICT NAME DETAIL: one line of the table.
  if [ "$1" = ok ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  table+=("$(printf '%-5s %-34s %s' "$1" "$2" "$3")")
  echo "${table[-1]}"
}
broken() {  # NAME DETAIL LOG: a row that failed, and the end of its log: the machine may not be there for long.
  row FAIL "$1" "$2"
  tail -25 "$3" 2>/dev/null | cut -c1-300 | sed 's/^/        /' || true
}
wanted() { [[ $1 == *"$only"* ]]; }

suite() {  # NAME PROGRAM: a binary of tests, a row with its counts.
  wanted "$1" || return 0
  local log=$dir/$2.log code=0 line
  run "$2" >"$log" 2>&1 || code=$?
  line=$(grep -E '^(All tests passed|test cases:)' "$log" | tail -1 || true)
  if [ "$code" = 0 ]; then
    row ok "$1" "$line"
  else
    broken "$1" "exit $code, ${line:-no summary}" "$log"
    # Which ops, and what was wrong first.
    grep -E '^  [A-Z][A-Za-z0-9]*$' "$log" | sort | uniq -c | sort -rn | head -20 | sed 's/^/        /' || true
    grep -E -A6 'FAILED:|error:' "$log" | head -40 | cut -c1-300 | sed 's/^/        /' || true
  fi
}

place=cuda:$gpu  # where ranks compute
train() {  # RUN JOB RANKS ARGUMENT…: trains; leaves the seconds in `seconds` and the digest in `digest`, or fails.
  local run=$1 job=$2 ranks=$3 begin=$EPOCHREALTIME
  shift 3
  digest=''
  # Runs are compared: a rule chooses their kernels, not a stopwatch.
  run lockstep run "$here/jobs/$job.yaml" --set resources.device=cuda --set numerics.tuned=false \
    --workers "$ranks" --device "$place" \
    --dir "$dir/$run" "$@" >"$dir/$run.log" 2>&1 || return 1
  seconds=$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  digest=$(run lockstep checkpoint digest "$dir/$run")
}

served() {  # NAME JOB PRECISION: no product, convolution or attention of the plan falls to an own kernel.
  local name="$1, who serves it" plan=$dir/$2-$3.plan slow
  run lockstep check "$here/jobs/$2.yaml" --plan --set resources.device=cuda --set numerics.tuned=false \
    --set "train.precision=$3" --device "$place" --dir "$dir/$2-$3.checked" >"$plan" 2>&1 || true
  if libraries_serve "$3" "$plan" >"$plan.own"; then
    row ok "$name" "$served_summary"
  else
    row FAIL "$name" "$served_summary"
    sed 's/^ */        /' "$plan.own"
    if [ ! -s "$plan.own" ]; then tail -25 "$plan" | cut -c1-300 | sed 's/^/        /'; fi
  fi
}

last_loss() { sed -n 's/^evaluated step .* loss \([0-9.e+-]*\) .*/\1/p' "$dir/$1.log" | tail -1; }

model() {  # JOB KILL_EVERY LOSS PRECISION: one rank, which learns to that loss; two ranks, and kills: the same digest.
  local job=$1 kill_every=$2 most=$3 one loss name="$1, $4" id=$1-$4 precision=(--set "train.precision=$4")
  wanted "$name" || return 0
  served "$name" "$job" "$4"
  if ! train "$id-1" "$job" 1 "${precision[@]}"; then
    broken "$name, 1 rank" "it was not trained" "$dir/$id-1.log"
    return 0
  fi
  one=$digest
  loss=$(last_loss "$id-1")
  if awk -v loss="${loss:-nan}" -v most="$most" 'BEGIN { exit !(loss + 0 > 0 && loss + 0 <= most) }'; then
    row ok "$name, 1 rank" "$seconds s, loss $loss, digest ${one:0:12}"
  else
    row FAIL "$name, 1 rank" "loss ${loss:-unknown} after training, at most $most was expected"
  fi
  again() {  # NAME RUN RANKS ARGUMENT…
    local what=$1 run=$2 ranks=$3
    shift 3
    same "$name, $what" "$one" "$id-$run" "$job" "$ranks" "${precision[@]}" "$@"
  }
  again "1 rank again" again 1
  again "2 ranks on one GPU" 2 2
  if [ "$gpus" -gt 1 ]; then
    place=cuda
    again "2 ranks on two GPUs" two 2
    again "two GPUs, kill -9" two-kill 2 --kill-worker-every "$kill_every" --kill-seed 8
    place=cuda:$gpu
  fi
  again "2 ranks, kill -9" kill 2 --kill-worker-every "$kill_every" --kill-seed 7
}

same() {  # NAME EXPECTED RUN JOB RANKS ARGUMENT…: trains, and holds the digest against the expected one.
  local name=$1 expected=$2 run=$3 killed
  shift 2
  if ! train "$@"; then
    broken "$name" "it was not trained" "$dir/$run.log"
    return 0
  fi
  killed=$(sed -n 's/.*killed \([0-9]*\) workers on purpose.*/\1/p' "$dir/$run.log" | tail -1)
  if [ "$digest" != "$expected" ]; then
    broken "$name" "digest ${digest:0:12}, expected ${expected:0:12}" "$dir/$run.log"
  elif [[ " $* " == *" --kill-worker-every "* ]] && [ "${killed:-0}" = 0 ]; then
    broken "$name" "nobody was killed: the job was over too soon" "$dir/$run.log"
  else
    row ok "$name" "$seconds s, the same digest${killed:+, $killed killed}"
  fi
}

# The most that processes of this bundle hold on the GPU while a command runs, in MiB per process; empty if not known.
watch_memory() {  # FILE COMMAND…
  local file=$1 pid code=0
  shift
  : >"$file"
  "$@" &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    nvidia-smi --query-compute-apps=process_name,used_memory --format=csv,noheader,nounits 2>/dev/null |
      awk -F', ' '/libexec\/lockstep/ { print $2 }' >>"$file" || true
    sleep 0.2
  done
  wait "$pid" || code=$?
  return "$code"
}

memory() {
  wanted memory || return 0
  local code=0 cap=2048 most expected
  run lockstep run "$here/jobs/gpt.yaml" --set resources.device=cuda --set resources.gpu_memory=1MiB --workers 1 \
    --device "cuda:$gpu" --dir "$dir/memory-small" >"$dir/memory-small.log" 2>&1 || code=$?
  if [ "$code" = 78 ] && grep -qE 'bytes of its GPU|gpu_memory' "$dir/memory-small.log"; then
    row ok "memory: too small a cap is refused" "$(grep -oE 'a worker needs [^,]*|[^:]*gpu_memory.*' "$dir/memory-small.log" | head -1 | cut -c1-100)"
  else
    broken "memory: too small a cap is refused" "exit $code" "$dir/memory-small.log"
  fi
  train memory-free gpt 2 || true
  expected=$digest
  if ! watch_memory "$dir/memory.used" train memory-capped gpt 2 --set "resources.gpu_memory=${cap}MiB"; then
    broken "memory: two ranks with caps" "it was not trained" "$dir/memory-capped.log"
    return 0
  fi
  digest=$(run lockstep checkpoint digest "$dir/memory-capped") || true  # it was trained in a subshell
  most=$(grep -xE '[0-9]+' "$dir/memory.used" | sort -n | tail -1) || true
  if [ -n "$most" ] && [ "$most" -gt "$cap" ]; then
    row FAIL "memory: two ranks with caps" "$most MiB in use, $cap MiB allowed"
  elif [ "$digest" != "$expected" ]; then
    row FAIL "memory: two ranks with caps" "digest ${digest:0:12}, without caps ${expected:0:12}"
  else
    row ok "memory: two ranks with caps" "${most:-not measured:} MiB in use at most, $cap MiB allowed; the same digest"
  fi
}

mixed() {  # A worker without a GPU has no part in a job of GPUs.
  wanted refusal || return 0
  local code=0
  train refusal lenet 1 --set train.duration=60steps || true
  run lockstep run "$here/jobs/lenet.yaml" --set resources.device=cuda --set numerics.tuned=false \
    --set train.duration=80steps --workers 1 \
    --device cpu --dir "$dir/refusal" >"$dir/refusal-cpu.log" 2>&1 || code=$?
  if [ "$code" = 78 ] && grep -q -- '--device cpu rules them out' "$dir/refusal-cpu.log"; then
    row ok "refusal: a CPU in a job of GPUs" "exit 78"
  else
    broken "refusal: a CPU in a job of GPUs" "exit $code" "$dir/refusal-cpu.log"
  fi
}

# Jobs are long enough for a worker that was killed to come back, and short enough for a borrowed GPU.
suite "kernels: contract and reference" device_gpu_test
suite "kernels: bits of host execution" own_kernels_gpu_test
for precision in fp32 bf16; do
  model lenet 700steps 0.8 "$precision"
  model resnet18 150steps 2.0 "$precision"
  model gpt 150steps 3.2 "$precision"
done
memory
mixed

echo
printf '%s\n' "${table[@]}"
echo "$passed passed, $failed failed"
if [ "$failed" = 0 ] && [ "$keep" = 0 ]; then rm -rf "$dir"; else echo "logs and runs: $dir"; fi
[ "$failed" = 0 ]
