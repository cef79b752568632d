#!/usr/bin/env bash
# What checkpoints cost: a table in Markdown.
#   --mib LIST       sizes of what is saved (default: 1024,4096); the first is also that of the job's state
#   --rounds N       of each (default: 3); medians are shown
#   --dir DIR        a folder on the disk that is measured (default: /tmp)
#   --memory DIR     one in memory, to leave the disk out (default: /dev/shm)
#   --python PATH    a Python with torch: torch.distributed.checkpoint beside it, save and async_save
#                      python3 -m venv DIR && DIR/bin/pip install torch numpy
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/bench/mlp_job.sh

sizes=1024,4096 rounds=3 dir=/tmp memory=/dev/shm python=''
while [ $# -gt 0 ]; do
  case "$1" in
    --mib) sizes=${2:?--mib needs a list}; shift ;;
    --rounds) rounds=${2:?--rounds needs a number}; shift ;;
    --dir) dir=${2:?--dir needs a directory}; shift ;;
    --memory) memory=${2:?--memory needs a directory}; shift ;;
    --python) python=${2:?--python needs a path}; shift ;;
    *) echo "checkpoint.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done
if [ -n "$python" ] && ! "$python" -c 'import torch' 2>/dev/null; then
  echo "checkpoint.sh: '$python' has no torch" >&2
  exit 78
fi
deploy/packages.sh build data
bazel build --noshow_progress --ui_event_filters=-info //tests/bench:shard_write_bench //deploy/cli:lockstep
lockstep=$PWD/bazel-bin/deploy/cli/lockstep
on_disk=$(mktemp -d "$dir/lockstep-checkpoint-XXXXXX")
in_memory=$(mktemp -d "$memory/lockstep-checkpoint-XXXXXX")
trap 'rm -rf "$on_disk" "$in_memory"' EXIT

row() { printf '| %-62s | %s |\n' "$1" "$2"; }
over() { awk -v a="$1" -v b="$2" -v digits="${3:-2}" 'BEGIN { printf "%.*f", digits, a / b }'; }

echo "| what | figure |"
echo "|---|---|"
for mib in ${sizes//,/ }; do
  figures=$(bazel-bin/tests/bench/shard_write_bench --dir "$on_disk" --mib "$mib" --rounds "$rounds")
  of() { sed -nE "s/.*\"$1\":([0-9.]+).*/\1/p" <<<"$figures"; }
  row "$mib MiB from 2 senders, durable and digested, over dd conv=fsync" \
    "$(of save_over_dd) ($(of save_mib_per_s) and $(of dd_mib_per_s) MiB/s)"
done

mib=${sizes%%,*}
mlp_job checkpoint-bench "$mib" $((20 * rounds + 20)) 20 >"$on_disk/job.yaml"

seconds_of() {  # TIME of day, as logs begin with it.
  awk -F: '{ print $1 * 3600 + $2 * 60 + $3 }' <<<"$1"
}
job() {  # NAME FOLDER
  local log=$on_disk/$1.log saved stalled bytes start begun stats
  "$lockstep" run "$on_disk/job.yaml" --workers 2 --dir "$2/$1" >"$log" 2>&1 ||
    { tail -3 "$log" >&2; echo "checkpoint.sh: the job on $1 failed" >&2; return 1; }
  saved=$(sed -nE 's/^saved step [1-9][0-9]* .* in ([0-9.]+) s,.*/\1/p' "$log" | median)
  stalled=$(sed -nE 's/^saved step [1-9][0-9]* .* stalled ([0-9.]+) ms.*/\1/p' "$log" | median)
  bytes=$(sed -nE 's/^saved step [1-9][0-9]* +([0-9.]+) MiB.*/\1/p' "$log" | head -n 1)
  row "a job's save of $bytes MiB, two workers, $1" "$saved s ($(over "$bytes" "$saved" 0) MiB/s)"
  row "training stands still for it, $1" "$stalled ms"
  stats=$2/$1/stats/worker_stats.json
  row "waiting for saves, one per 20 steps, $1" "$(awk -v stall="$stalled" -v saves="$rounds" \
    -v time="$(sed -nE 's/.*"trained_seconds": ([0-9.]+).*/\1/p' "$stats")" \
    'BEGIN { printf "%.2f%% of the time", 100 * stall * saves / 1000 / time }')"
  # It goes on from its checkpoint: nothing of which is in the file cache of a machine that comes back.
  "$lockstep" run "$on_disk/job.yaml" --workers 2 --dir "$2/$1" --set "train.duration=$((20 * rounds + 21))steps" \
    >"$log.again" 2>&1 || { tail -3 "$log.again" >&2; return 1; }
  start=$(sed -nE 's/^([0-9:.]+) chief: term .*/\1/p' "$log.again" | head -n 1)
  begun=$(sed -nE 's/^([0-9:.]+) chief[^:]*: generation .* steps from step .*/\1/p' "$log.again" | head -n 1)
  row "from a listening chief to the first step from the checkpoint, $1" \
    "$(awk -v a="$(seconds_of "$start")" -v b="$(seconds_of "$begun")" 'BEGIN { printf "%.2f s", b - a }')"
}
job "on disk" "$on_disk"
job "in memory" "$in_memory"

if [ -n "$python" ]; then
  for place in "$on_disk" "$in_memory"; do
    name="on disk"
    [ "$place" = "$on_disk" ] || name="in memory"
    "$python" tests/bench/checkpoint_dcp.py --mib "$mib" --rounds "$rounds" --dir "$place/dcp" |
      while read -r what figure; do row "torch.distributed.checkpoint, $mib MiB, ${what//_/ }, $name" "$figure s"; done
  done
fi
