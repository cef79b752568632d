#!/usr/bin/env bash
# Installs what the tests need, builds, and runs all of them. The last line is `N passed, N failed[, N skipped]`,
# counted in test cases. Exit 0 only if nothing failed.
#   --build-only                               stop after the build
#   --only PATTERN                             only targets whose label contains PATTERN
#   --sanitize=address|undefined|thread        everything under that sanitizer
#   --simulate COUNT                           how many fault schedules run, the same seeds in every run, with a tenth
#                                              of fresh ones after them, and a twentieth on the chief's own storage
#                                              (1,000; 0: none); --only leaves them out
#   --cluster                                  also the packages and real engines: tests/package/package.sh and
#                                              tests/cluster/*.sh (root, the network, about 50 minutes)
#   --chaos SECONDS                            how long random faults hit real processes (120; 0: not at all); --only
#                                              and --sanitize leave it out
set -euo pipefail
cd "$(dirname "$0")/.."

build_only=0 only='' simulate=1000 chaos=120 cluster=0 flags=()
while [ $# -gt 0 ]; do
  case "$1" in
    --build-only) build_only=1 ;;
    --cluster) cluster=1 ;;
    --only) only=${2:?--only needs a pattern}; shift ;;
    --only=*) only=${1#*=} ;;
    --sanitize=address | --sanitize=undefined | --sanitize=thread) flags+=("--config=${1#*=}") ;;
    --chaos) chaos=${2:?--chaos needs a number of seconds}; shift ;;
    --simulate) simulate=${2:?--simulate needs a count}; shift ;;
    *) echo "tests/run.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done

deploy/packages.sh build data test

# One summary line per test binary goes to its log; the counts are read from there. A test case that this machine cannot
# run prints "SKIPPED: why" and ends: Catch2 counts it as passed, this script does not.
summarise() {
  awk '
    /^All tests passed \(/ { match($0, /in [0-9]+ test case/); passed += substr($0, RSTART + 3, RLENGTH - 13); seen = 1 }
    /^test cases: / {
      for (i = 1; i < NF; i++) { if ($(i + 1) == "passed") passed += $i; if ($(i + 1) == "failed") failed += $i }
      seen = 1
    }
    /^SKIPPED: / { passed -= 1; skipped += 1 }
    /^[0-9]+ passed, [0-9]+ failed/ { passed += $1; failed += $3; if ($5 != "") skipped += $5; seen = 1 }
    END { if (!seen) failed += 1; printf "%d %d %d\n", passed, failed, skipped }' "$@"
}

# What runs a second time under sanitizers does so once where everything does.
left_out=gpu
[ ${#flags[@]} -eq 0 ] || left_out='gpu|sanitized'
list() {  # The labels of all test targets that match --only, GPU ones (tag) apart.
  bazel query --noshow_progress --ui_event_filters=-info "tests(//...) $1" 2>/dev/null | grep -F -- "$only" || true
}
mapfile -t targets < <(list 'except attr(tags, "\b('"$left_out"')\b", tests(//...))')
mapfile -t skipped_targets < <(list 'intersect attr(tags, "\bgpu\b", tests(//...))')
[ ${#targets[@]} -gt 0 ] || { echo "tests/run.sh: no test target contains '$only'" >&2; exit 64; }

quiet=(--noshow_progress --ui_event_filters=-info)
built=("${targets[@]}")
[ -n "$only" ] || built=(//...)
if [ "$build_only" = 1 ]; then
  bazel build "${quiet[@]}" "${flags[@]}" "${built[@]}"
  exit 0
fi

results=$(mktemp) simulations='' chaos_pid='' chaos_log=''
finish() {
  rm -f "$results" ${chaos_log:+"$chaos_log"}
  local pid
  for pid in $simulations $chaos_pid; do { pkill -P "$pid"; kill "$pid"; } 2> /dev/null || true; done
}
trap finish EXIT

# Tests wait for processes half of their time: they run while others are still compiled.
code=0
bazel test "${quiet[@]}" "${flags[@]}" "--test_tag_filters=-${left_out/|/,-}" --keep_going --test_output=errors "${built[@]}" 2>&1 |
  tee "$results" || code=${PIPESTATUS[0]}

# Fault schedules run beside all that comes next, where it waits, and give way to it.
simulator=bazel-bin/tests/simulation/simulation_main simulations_log=$(mktemp)
[ ${#flags[@]} -eq 0 ] || simulate=$((simulate / 20))  # several times slower
if [ -x "$simulator" ] && [ -z "$only" ] && [ "$simulate" -gt 0 ]; then
  {
    nice -n 19 "$simulator" --seeds-file tests/simulation/regression_seeds.txt --seeds-from 1 --count "$simulate" &&
      nice -n 19 "$simulator" --fresh --count $((simulate / 10)) &&
      nice -n 19 "$simulator" --store real --fresh --count $((simulate / 20))
  } > "$simulations_log" 2>&1 &
  simulations=$!
fi

passed=0 failed=0 skipped=${#skipped_targets[@]}
if [ "$code" != 0 ] && [ "$code" != 3 ]; then  # 3: everything was built, and a test failed
  echo "tests/run.sh: the build failed"
  failed=1
fi
for label in "${targets[@]}"; do
  logs="bazel-testlogs/${label#//}"
  logs="${logs/://}"
  # The newest, and with it those of the other shards; older ones may be of another number of shards.
  log=$(ls -t "$logs"/test.log "$logs"/shard_*/test.log 2> /dev/null | head -n 1) || true
  if [ -z "$log" ]; then
    echo "$label did not run"
    failed=$((failed + 1))
    continue
  fi
  case "$log" in */shard_*) log="$logs/shard_*_of_${log#*_of_}" ;; esac
  # shellcheck disable=SC2086  # a pattern
  read -r p f s < <(cat $log | summarise)
  # A binary may fail after its summary (a leak, a crash while exiting): the verdict is Bazel's.
  if [ "$f" = 0 ] && ! grep -qE "^$label .*PASSED" "$results"; then f=1; fi
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done

# Adds what the log of a script says to the counts.
count_log() {
  read -r p f s < <(summarise "$1")
  rm -f "$1"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# Faults at random run beside tidy, for a fixed time, most of which is waiting for processes.
chaos_log=$(mktemp)
if [ ${#flags[@]} -eq 0 ] && [ -z "$only" ] && [ "$chaos" -gt 0 ]; then
  tests/e2e/chaos.sh "$chaos" > "$chaos_log" &
  chaos_pid=$!
fi

# Objects of a sanitizer are not what these read.
for script in tests/tidy/tidy.sh tests/gpu/static.sh; do
  if [ ${#flags[@]} -gt 0 ] || [[ $(basename "$script" .sh) != *"$only"* ]]; then continue; fi
  script_log=$(mktemp)
  "$script" | tee "$script_log" || true
  count_log "$script_log"
done

if [ -n "$chaos_pid" ]; then
  wait "$chaos_pid" || true
  chaos_pid=''
  cat "$chaos_log"
  count_log "$chaos_log"
fi

if [ "$cluster" = 1 ]; then
  for script in tests/page/page.sh tests/package/package.sh tests/cluster/{control_plane,kubernetes,launchers,monitoring,slurm,ssh,systemd,walkthrough,wireguard}.sh; do
    script_log=$(mktemp)
    "$script" 2>&1 | tee "$script_log" || true
    count_log "$script_log"
  done
fi

if [ -n "$simulations" ]; then
  if wait "$simulations"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
  simulations=''
  cat "$simulations_log"
fi
rm -f "$simulations_log"

line="$passed passed, $failed failed"
[ "$skipped" = 0 ] || line="$line, $skipped skipped"
echo "$line"
[ "$failed" = 0 ]
