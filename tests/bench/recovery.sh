#!/usr/bin/env bash
# How long a job of three workers needs to step again after a fault of each kind, and where the time goes: one table,
# median / 95th percentile in milliseconds. docs/benchmarks.md says what the columns mean and keeps the figures.
#   --rounds N       of each fault (default: 50; stop_worker and cut_worker take about ten seconds each)
#   --faults LIST    of kill_worker,kill_chief,term_worker,stop_worker,join,cut_worker (default: all)
#   --python PATH    a Python with torch: torchrun's elastic agent at the same step time beside it
#   --dir DIR        where jobs are written while measuring (default: /tmp)
#   --raw FILE       keep the programs' own output, one JSON object per line, in FILE
#   --bench PATH     the recovery_bench that stands in a folder with deploy/ (default: it is built)
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=50 faults=kill_worker,kill_chief,term_worker,stop_worker,join,cut_worker python='' dir=/tmp raw='' bench=''
while [ $# -gt 0 ]; do
  case "$1" in
    --rounds) rounds=${2:?--rounds needs a number}; shift ;;
    --faults) faults=${2:?--faults needs a list}; shift ;;
    --python) python=${2:?--python needs a path}; shift ;;
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
mkdir -p "$dir"
TEST_TMPDIR=$(mktemp -d "$dir/lockstep-recovery-XXXXXX")
export TEST_TMPDIR
trap 'rm -rf "$TEST_TMPDIR"' EXIT
figures=$TEST_TMPDIR/figures
for fault in ${faults//,/ }; do
  echo "measuring $fault" >&2
  # The program starts deploy/cli/lockstep from the folder that it stands in.
  (cd "${bench%/tests/bench/*}" && "$bench" --job "$jobs/fashion_mnist_short.yaml" --rounds "$rounds" --fault "$fault") \
    >>"$figures" || echo "recovery.sh: $fault was not measured" >&2
done
if [ -n "$python" ]; then
  step_ms=$(sed -nE 's/.*"step_ms":([0-9.]+).*/\1/p' "$figures" | head -n 1)
  echo "measuring torchrun" >&2
  "$python" "$scripts/recovery_torchrun.py" --rounds "$rounds" --step-ms "${step_ms:-7}" --directory "$TEST_TMPDIR" \
    >>"$figures" || echo "recovery.sh: torchrun was not measured" >&2
fi
[ -z "$raw" ] || cp "$figures" "$raw"

awk '
  { gsub(/[{}" ]/, ""); n = split($0, pairs, ","); delete v
    for (i = 1; i <= n; i++) { split(pairs[i], kv, ":"); v[kv[1]] = kv[2] }
    name = (v["bench"] == "recovery" ? "" : v["bench"] ", ") v["fault"]
    line = sprintf("%-24s %5d %7.2f", name, v["kills"], v["step_ms"])
    m = split("detect abort choose form sync step total stood", columns, " ")
    for (i = 1; i <= m; i++) {
      key = columns[i]
      line = line sprintf(" %15s", (key "_p50_ms") in v ? sprintf("%.0f / %.0f", v[key "_p50_ms"], v[key "_p95_ms"]) : "")
    }
    print line
  }
  BEGIN {
    printf "%-24s %5s %7s %15s %15s %15s %15s %15s %15s %15s %15s\n", "fault", "times", "step ms", "detect", "abort",
      "choose", "form", "sync", "first step", "total", "stood still"
  }' "$figures"
