#!/usr/bin/env bash
# What training costs on one GPU, inside the bundle that bundle.sh makes: whole jobs of Lockstep, and the same models in
# PyTorch in the same run where PYTHON (python3) can import torch. Prints a table; every figure also stands in
# DIR/figures, one `name value` per line.
#   --gpu N        which one (0)                 --quick          fewer steps: to see that it works
#   --dir DIR      where data, runs and logs are kept (a fresh folder below /tmp)
#   --only PATTERN what to measure, of gpt2-bf16, resnet50-tf32, …, saves, recovery: those that contain PATTERN
#   --profile      also where the time of every job goes, as a trace
# Samples per second are those of the median step: Lockstep's by its own statistics, from the arrival of the batch to the
# applied update, PyTorch's by CUDA events, the copy of the batch counted. Memory is what the GPU has in use more than before, so that
# contexts and libraries count for both. Exit 78: no GPU. 1: a product, a convolution or attention of a model falls to
# an own kernel; the nodes are listed, and the table is printed all the same.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

gpu=0 steps=100 torch_steps=50 kills=10 dir='' only='' profile=0
while [ $# -gt 0 ]; do
  case "$1" in
    --gpu) gpu=${2:?--gpu needs a number}; shift ;;
    --quick) steps=20 torch_steps=10 kills=2 ;;
    --dir) dir=${2:?--dir needs a folder}; shift ;;
    --only) only=${2:?--only needs a pattern}; shift ;;
    --profile) profile=1 ;;
    *) echo "bench.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done

# shellcheck source=cuda_env.sh
. "$here/cuda_env.sh"
find_cuda_libraries "$here"
# shellcheck source=served.sh
. "$here/served.sh"
run() { LD_LIBRARY_PATH=$lockstep_path "$here/libexec/$1" "${@:2}"; }
python=${PYTHON:-python3}

machine=$(run lockstep check --machine)
echo "$machine"
if ! grep -q "^ok    gpu $gpu " <<<"$machine"; then
  echo "bench.sh: GPU $gpu cannot be used; the lines above say why" >&2
  exit 78
fi
name=$(sed -n "s/^ok    gpu $gpu  *\([^,]*\),.*/\1/p" <<<"$machine")

[ -n "$dir" ] || dir=$(mktemp -d /tmp/lockstep-bench-XXXXXX)
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
cp -r "$here/jobs" "$here/data" "$dir/"
"$python" "$here/bench_data.py" "$dir/bench_data"
figures=$dir/figures unserved=0
: >"$figures"
wanted() { [[ $1 == *"$only"* ]]; }
note() { echo "$1 $2" >>"$figures"; }
figure() { awk -v name="$1" '$1 == name { print $2; found = 1 } END { if (!found) print "-" }' "$figures"; }

in_use() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -i "$gpu" 2>/dev/null || echo 0; }

# Runs a command; leaves the most that the GPU had in use more than before, in MiB, in `peak`.
with_memory() {
  local before most=0 now pid code=0
  before=$(in_use)
  "$@" &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    now=$(in_use)
    [ "$now" -le "$most" ] || most=$now
    sleep 0.1
  done
  wait "$pid" || code=$?
  peak=$((most > before ? most - before : 0))
  return "$code"
}

lockstep_job() {  # LOG RUN JOB ARGUMENT…
  local log=$1 run=$2 job=$3
  shift 3
  rm -rf "${dir:?}/$run"
  run lockstep run "$dir/jobs/$job.yaml" --dir "$dir/$run" --device "cuda:$gpu" "$@" >"$log" 2>&1
}
# A figure of the job's statistics, by an expression over `job` and the first `worker`.
stat_of() {  # RUN EXPRESSION
  "$python" - "$dir/$1/stats/worker_stats.json" "$2" <<'PYTHON'
import json, sys
stats = json.load(open(sys.argv[1]))
value = eval(sys.argv[2], {"job": stats["job"], "worker": stats["workers"][0]})
print(f"{value:.2f}")
PYTHON
}
pytorch() {  # LOG ARGUMENT…
  local log=$1
  shift
  "$python" "$here/bench_pytorch.py" "$@" --gpu "$gpu" --steps "$torch_steps" >"$log" 2>"$log.errors"
}

served() {  # PRECISION LOG JOB ARGUMENT…: says which nodes fall to own kernels though libraries should serve them.
  local precision=$1 log=$2 job=$3
  shift 3
  run lockstep check "$dir/jobs/$job.yaml" --plan --dir "$log.checked" --device "cuda:$gpu" "$@" >"$log.plan" 2>&1 ||
    true
  if libraries_serve "$precision" "$log.plan" >"$log.own"; then return 0; fi
  unserved=1
  echo "  $served_summary, though libraries should serve all:" >&2
  cat "$log.own" >&2
  if [ ! -s "$log.own" ]; then tail -5 "$log.plan" >&2; fi
}

measure() {  # MODEL BATCH MODE: one model in one precision, ours and PyTorch's.
  local model=$1 batch=$2 mode=$3 set=() flag=() log kind extra
  case "$mode" in
    tf32) set=(--set numerics.tf32=true) flag=(--tf32) ;;
    bf16) set=(--set train.precision=bf16) flag=(--bf16) ;;
  esac
  log=$dir/$model-$mode
  echo "measuring $model, $mode" >&2
  served "$mode" "$log" "bench_$model" ${set[@]+"${set[@]}"} --set "train.global_batch_size=$batch"
  if with_memory lockstep_job "$log.log" "$model-$mode" "bench_$model" --workers 1 ${set[@]+"${set[@]}"} \
    --set "train.duration=${steps}steps" --set "train.global_batch_size=$batch"; then
    note "$model.$mode.ours" "$(stat_of "$model-$mode" "1000 * $batch / worker['step_ms_p50']")"
    note "$model.$mode.ours_mib" "$peak"
    [ "$profile" = 0 ] || run lockstep profile "$dir/jobs/bench_$model.yaml" --device "cuda:$gpu" --steps 5 ${set[@]+"${set[@]}"} \
      --set "train.global_batch_size=$batch" -o "$log.trace.json" >"$log.profile" 2>&1 || true
  else
    echo "  failed: $(tail -1 "$log.log")" >&2
  fi
  for kind in eager compiled; do
    extra=()
    [ "$kind" = eager ] || extra=(--compile)
    if with_memory pytorch "$log.$kind" "$model" --batch "$batch" ${flag[@]+"${flag[@]}"} ${extra[@]+"${extra[@]}"}; then
      note "$model.$mode.$kind" "$("$python" -c 'import json, sys; print(json.load(sys.stdin)["samples_per_second"])' <"$log.$kind")"
      note "$model.$mode.${kind}_mib" "$peak"
    else
      echo "  PyTorch $kind: $(tail -1 "$log.$kind.errors")" >&2
    fi
  done
}

# Arithmetic per sample of a training step (three times the forward pass, two per multiplication and addition), and what
# the GPU could do in that precision, in TFLOP/s without sparsity; `-` for a GPU that is not listed.
flops_of() { case "$1" in gpt2) echo 8.80e11 ;; resnet50) echo 2.45e10 ;; esac; }
peak_of() {
  case "$name/$1" in
    *H100*PCIe*/bf16) echo 756 ;;
    *H100*/bf16 | *H200*/bf16) echo 989 ;;
    *A100*/bf16) echo 312 ;;
    *H100*PCIe*/tf32) echo 378 ;;
    *H100*PCIe*/fp32) echo 51 ;;
    *H100*/tf32 | *H200*/tf32) echo 494.7 ;;
    *H100*/fp32 | *H200*/fp32) echo 66.9 ;;
    *A100*/tf32) echo 156 ;;
    *A100*/fp32) echo 19.5 ;;
    *) echo - ;;
  esac
}

line() {  # MODEL MODE GOAL: a line of the table.
  awk -v model="$1" -v mode="$2" -v goal="$3" -v ours="$(figure "$1.$2.ours")" -v eager="$(figure "$1.$2.eager")" \
    -v compiled="$(figure "$1.$2.compiled")" -v mib="$(figure "$1.$2.ours_mib")" \
    -v eager_mib="$(figure "$1.$2.eager_mib")" -v compiled_mib="$(figure "$1.$2.compiled_mib")" \
    -v flops="$(flops_of "$1")" -v peak="$(peak_of "$2")" '
    function over(a, b) { return a == "-" || b == "-" || b + 0 == 0 ? "-" : sprintf("%.2f", a / b) }
    BEGIN {
      least = eager_mib; if (compiled_mib != "-" && (least == "-" || compiled_mib + 0 < least + 0)) least = compiled_mib
      use = ours == "-" || peak == "-" ? "-" : sprintf("%.0f%%", 100 * ours * flops / (peak * 1e12))
      printf "%-10s %-5s %10s %10s %10s   %6s %8s   %8s %8s   %s\n", model, mode, ours, eager, compiled,
        over(ours, eager), over(ours, compiled) (goal == "" ? "" : " (" goal ")"), mib, over(mib, least), use
    }'
}

stall() {  # The share of the time for which training waits for saves, at one per 100 steps.
  echo "measuring saves" >&2
  lockstep_job "$dir/saves.log" saves lenet --workers 1 --set resources.device=cuda --set train.duration=1000steps \
    --set checkpoint.every=100steps || { echo "  failed: $(tail -1 "$dir/saves.log")" >&2; return 0; }
  note saves.stall_percent "$(stat_of saves "100 * worker['checkpoint_seconds'] / job['trained_seconds']")"
}

recovery() {  # From SIGKILL of one of three ranks to the next step that the others apply.
  echo "measuring recovery" >&2
  local out
  mkdir -p "$dir/recovery"
  if out=$(cd "$here" && TEST_TMPDIR=$dir/recovery LD_LIBRARY_PATH=$lockstep_path libexec/recovery_bench \
    --job "$dir/jobs/lenet.yaml" --kills "$kills" 2>"$dir/recovery.log"); then
    echo "$out" >>"$dir/recovery.json"
    note recovery "$("$python" -c 'import json, sys
figures = json.load(sys.stdin)
print(",".join(f"{k}={v}" for k, v in figures.items() if isinstance(v, (int, float))))' <<<"$out")"
  else
    echo "  failed: $(tail -1 "$dir/recovery.log")" >&2
  fi
}

# Each line as soon as it is known, since whoever lent the GPU may want it back.
echo "$name, $(run lockstep --version), PyTorch $("$python" -c 'import torch; print(torch.__version__)' 2>/dev/null || echo absent)"
printf '%-10s %-5s %10s %10s %10s   %6s %8s   %8s %8s   %s\n' model mode ours eager compiled /eager /compiled MiB /lesser 'of peak'
for mode in bf16 tf32 fp32; do
  if wanted "gpt2-$mode"; then measure gpt2 8 "$mode" && line gpt2 "$mode" 'goal 1.15'; fi
  if wanted "resnet50-$mode"; then measure resnet50 64 "$mode" && line resnet50 "$mode" 'goal 1.10'; fi
done
if wanted saves; then stall; fi
if wanted recovery; then recovery; fi

echo "waiting for saves, one per 100 steps: $(figure saves.stall_percent)% of the time (goal 1%)"
echo "recovery after SIGKILL of a rank: $(figure recovery) (goal 2 s)"
echo "samples/s; the ratio of memory is over the lesser of PyTorch's. Figures, logs and traces: $dir"
if [ "$unserved" = 1 ]; then
  echo "bench.sh: nodes fall to own kernels though libraries should serve them: see above, or $dir/*.own" >&2
  exit 1
fi
