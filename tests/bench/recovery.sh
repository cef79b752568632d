#!/usr/bin/env bash
# How long a job of three workers needs to step again after a fault of each kind, and where the time goes: a table in
# Markdown, median / 95th percentile in milliseconds. docs/benchmarks.md says what the columns mean and has the figures.
#   --rounds N       of each fault (default: 50)
#   --faults LIST    of kill_worker,kill_chief,term_worker,stop_worker,join,cut_worker (default: all)
#   --gpt N          kills of a worker of a GPT of 6 layers of width 384, whose steps are long (default: 24; 0: none)
#   --python PATH    a Python with torch: torchrun's elastic agent beside it, and torchft where it has that. At the step
#                    time of our job, --peer-rounds N kills each (default: 20):
#                      python3 -m venv DIR && DIR/bin/pip install torch numpy torchft-nightly
#   --dir DIR        where jobs are written while measuring (default: /tmp)
#   --raw FILE       keep the programs' own output, one JSON object per line, in FILE
#   --bench PATH     the recovery_bench that stands in a folder with deploy/ (default: it is built)
# 200 kills of LeNet and nothing else: --faults kill_worker --rounds 200 --gpt 0
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=50 faults=kill_worker,kill_chief,term_worker,stop_worker,join,cut_worker gpt=24 python='' peer_rounds=20
dir=/tmp raw='' bench=''
while [ $# -gt 0 ]; do
  case "$1" in
    --rounds) rounds=${2:?--rounds needs a number}; shift ;;
    --faults) faults=${2?--faults needs a list}; shift ;;
    --gpt) gpt=${2:?--gpt needs a number}; shift ;;
    --python) python=${2:?--python needs a path}; shift ;;
    --peer-rounds) peer_rounds=${2:?--peer-rounds needs a number}; shift ;;
    --dir) dir=${2:?--dir needs a directory}; shift ;;
    --raw) raw=${2:?--raw needs a file}; shift ;;
    --bench) bench=${2:?--bench needs a path}; shift ;;
    *) echo "recovery.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
if [ -n "$python" ] && ! "$python" -c 'import torch' 2>/dev/null; then
  echo "recovery.sh: '$python' has no torch" >&2
  exit 78
fi
if [ -z "$bench" ]; then
  deploy/packages.sh build data
  bazel build --noshow_progress --ui_event_filters=-info //tests/bench:recovery_bench //deploy/cli:lockstep
  bench=bazel-bin/tests/bench/recovery_bench
fi

bench=$(readlink -f "$bench") jobs=$PWD/deploy/jobs scripts=$PWD/tests/bench
root=${bench%/tests/bench/*}  # recovery_bench starts deploy/cli/lockstep from here
mkdir -p "$dir"
TEST_TMPDIR=$(mktemp -d "$dir/lockstep-recovery-XXXXXX")
export TEST_TMPDIR
trap 'rm -rf "$TEST_TMPDIR"' EXIT
figures=$TEST_TMPDIR/figures
: >"$figures"  # also where no fault is measured
failed=0

measure() {  # NAME COMMAND…
  local begin=$SECONDS
  (cd "$root" && "${@:2}" | { grep "^{" || true; }) >>"$figures" ||
    { failed=1; echo "recovery.sh: $1 was not measured as asked for" >&2; }
  echo "$1: $((SECONDS - begin)) s" >&2
}

for fault in ${faults//,/ }; do
  measure "$fault" "$bench" --job "$jobs/fashion_mnist_short.yaml" --rounds "$rounds" --fault "$fault"
done
step_ms=$(sed -nE 's/.*"step_ms":([0-9.]+).*/\1/p' "$figures" 2>/dev/null | head -n 1)

if [ "$gpt" -gt 0 ]; then
  # What the text says does not matter.
  cat docs/*.md >"$TEST_TMPDIR/text"
  "$root/deploy/cli/lockstep" data tokenize --bytes "$TEST_TMPDIR/text" -o "$TEST_TMPDIR/tokens.bin" >&2
  cat >"$TEST_TMPDIR/gpt.yaml" <<JOB
name: gpt-6x384
model:
  builtin: {name: gpt2, layers: 6, heads: 6, width: 384, context: 128, vocabulary: 256}
  loss: softmax_cross_entropy
data:
  train: {tokens: $TEST_TMPDIR/tokens.bin, sequence_length: 128}
train:
  seed: 42
  duration: 60steps
  global_batch_size: 24
  logical_shards: 12
  optimizer: {name: adamw, lr: 1e-3}
cluster:
  workers: "1:4"
checkpoint: {every: 1000steps}
JOB
  measure gpt "$bench" --job "$TEST_TMPDIR/gpt.yaml" --rounds "$gpt" --fault kill_worker --settle 7
  sed -i '$s/"bench":"recovery"/"bench":"GPT 6x384"/' "$figures"
fi

if [ -n "$python" ]; then
  for peer in torchrun torchft; do
    if ! "$python" -c "import ${peer/torchrun/torch}" 2>/dev/null; then
      echo "recovery.sh: '$python' has no $peer: skipped" >&2
      continue
    fi
    measure "$peer" "$python" "$scripts/recovery_$peer.py" --rounds "$peer_rounds" --step-ms "${step_ms:-5}" \
      --directory "$TEST_TMPDIR"
  done
fi
[ -z "$raw" ] || cp "$figures" "$raw"

awk '
  BEGIN {
    called["kill_worker"] = "SIGKILL of a worker"; called["kill_chief"] = "SIGKILL of the chief"
    called["term_worker"] = "SIGTERM of a worker"; called["join"] = "a worker joins"
    called["stop_worker"] = "SIGSTOP of a worker, heartbeat_timeout 2s"
    called["cut_worker"] = "a worker'\''s host cut off, heartbeat_timeout 2s"
    print "| fault | times | step, ms | detect | abort | choose | form | sync | first step | total | stood still |" \
      " steps lost | died |"
    print "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    m = split("detect abort choose form sync step total stood", columns, " ")
  }
  /^{/ {  # others may print more
    gsub(/[{}"]/, ""); n = split($0, pairs, ","); delete v
    for (i = 1; i <= n; i++) { split(pairs[i], kv, ":"); gsub(/^ | $/, "", kv[1]); v[kv[1]] = kv[2] }
    gsub(/^ /, "", v["fault"]); gsub(/^ /, "", v["bench"])
    name = (v["bench"] == "recovery" ? "" : v["bench"] ", ") called[v["fault"]]
    line = sprintf("| %s | %d | %.1f |", name, v["kills"], v["step_ms"])
    for (i = 1; i <= m; i++) {
      key = columns[i]
      form = v["total_p50_ms"] < 1000 ? "%.1f / %.1f" : "%.0f / %.0f"
      cell = (key "_p50_ms") in v ? sprintf(form, v[key "_p50_ms"], v[key "_p95_ms"]) : ""
      line = line sprintf(" %s |", key == "total" ? "**" cell "**" : cell)
    }
    lost = "steps_lost_p50" in v ? sprintf("%d / %d", v["steps_lost_p50"], v["steps_lost_p95"]) : ""
    print line sprintf(" %s | %d |", lost, v["died"])
    if ("late_share_p50" in v && v["fault"] == "kill_worker")
      late = late sprintf("%s: the next step comes %.2f / %.2f of a step later than without the kill (%d kills).\n",
                          v["bench"] == "recovery" ? "LeNet" : v["bench"], v["late_share_p50"], v["late_share_p95"],
                          v["kills"])
    if (v["missed"] > 0) late = late sprintf("%s: %d rounds could not be judged and were played again.\n", name,
                                           v["missed"])
  }
  END { if (late != "") printf "\n%s", late }' "$figures"
exit $failed
