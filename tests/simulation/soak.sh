#!/usr/bin/env bash
# Runs fresh schedules on all cores for HOURS (a fraction is fine) and keeps the failing seeds.
#   tests/simulation/soak.sh HOURS [FILE]      FILE: where failing seeds go, a line each (soak_failures.txt)
# The last line is the count; exit 1 when any schedule failed. A seed that is understood and mended belongs into
# regression_seeds.txt.
set -euo pipefail
cd "$(dirname "$0")/../.."

hours=${1:?soak.sh needs the hours to run}
failures=${2:-soak_failures.txt}
bazel build --noshow_progress --ui_event_filters=-info //tests/simulation:simulation_main
simulator=bazel-bin/tests/simulation/simulation_main
seconds=$(awk -v hours="$hours" 'BEGIN { printf "%d", hours * 3600 }')
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

jobs=()
for core in $(seq "$(nproc)"); do
  nice "$simulator" --jobs 1 --fresh --seconds "$seconds" --max-failures 100 --failures-to "$failures" >"$logs/$core" &
  jobs+=($!)
done
failed=0
for job in "${jobs[@]}"; do wait "$job" || failed=1; done
grep -hA1 '^FAILED' "$logs"/* || true
awk '/ schedules in / { count += $1; failing += $(NF - 1) }
  END { printf "%d schedules, %d failed\n", count, failing }' "$logs"/*
exit "$failed"
