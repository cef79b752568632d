#!/usr/bin/env bash
# Builds the benchmarks and prints one table. Figures are ratios of things that were measured in turns within one run;
# an absolute time stands only where the goal is one. docs/benchmarks.md explains the rows and keeps the figures.
#   --quick        fewer rounds: to see that it works
#   --dir DIR      where jobs and checkpoints are written while measuring (default: /tmp)
#   --raw FILE     keep the programs' own output, one JSON object per line, in FILE
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=3 kills=15 steps=200 mib=512 dir=/tmp raw=''
while [ $# -gt 0 ]; do
  case "$1" in
    --quick) rounds=1 kills=3 steps=120 mib=64 ;;
    --dir) dir=${2:?--dir needs a directory}; shift ;;
    --raw) raw=${2:?--raw needs a file}; shift ;;
    *) echo "tests/bench/run.sh: unknown argument '$1' (see the head of the file)" >&2; exit 64 ;;
  esac
  shift
done

deploy/packages.sh build data
bazel build --noshow_progress --ui_event_filters=-info //tests/bench/... //deploy/cli:lockstep

mkdir -p "$dir"
TEST_TMPDIR=$(mktemp -d "$dir/lockstep-bench-XXXXXX")
export TEST_TMPDIR
trap 'rm -rf "$TEST_TMPDIR"' EXIT
figures=$TEST_TMPDIR/figures jobs=$PWD/deploy/jobs

measure() {  # PROGRAM ARGUMENT…: its JSON lines join the figures. The programs start deploy/cli/lockstep from there.
  echo "measuring with $1" >&2
  (cd bazel-bin && "tests/bench/$1" "${@:2}") >>"$figures"
}
measure plan_bench
measure allreduce_bench --rounds $((rounds * 5))
measure job_bench --job "$jobs/fashion_mnist.yaml" --rounds "$rounds" --set "train.duration=${steps}steps" \
  --set checkpoint.every=20steps
measure recovery_bench --job "$jobs/fashion_mnist_short.yaml" --kills "$kills"
measure shard_write_bench --dir "$TEST_TMPDIR" --mib "$mib" --rounds "$rounds"
[ -z "$raw" ] || cp "$figures" "$raw"

awk '
  { # name:value pairs of one flat object; the key of a line is its bench, ranks and values
    gsub(/[{}" ]/, ""); n = split($0, pairs, ","); delete v
    for (i = 1; i <= n; i++) { split(pairs[i], kv, ":"); v[kv[1]] = kv[2] }
    id = v["bench"] (v["ranks"] ? "/" v["ranks"] : "") (v["values"] ? "/" v["values"] : "")
    if (v["model"]) id = "plan"
    for (k in v) f[id, k] = v[k]
  }
  function get(id, k) {
    if (!((id, k) in f)) { printf "run.sh: no figure %s of %s\n", k, id > "/dev/stderr"; failed = 1; exit 1 }
    return f[id, k]
  }
  function row(what, value, goal) { printf "%-74s %12s  %s\n", what, value, goal }
  function percent(x) { return sprintf("%.2f%%", 100 * x) }
  function times(x) { return sprintf("%.2fx", x) }
  END {
    if (failed) exit 1
    small = 61706; big = 2750000
    row("figure", "measured", "goal")
    row("step outside kernels, collectives and update, 1 worker", percent(get("job", "outside_share_1")), "")
    row("step outside kernels, collectives and update, 2 workers", percent(get("job", "outside_share_2")), "")
    row("step in collectives, waiting for the other worker included, 2 workers", percent(get("job", "all_reduce_share_2")), "")
    row("pass of a plan outside its kernels", percent(get("plan", "outside_kernels_share")), "")
    for (r = 2; r <= 4; r++) {
      row("exact all-reduce / Gloo float ring, LeNet, " r " ranks", times(get("allreduce/" r "/" small, "exact_over_gloo")), "")
      row("exact all-reduce / Gloo float ring, 2.75 million values, " r " ranks", times(get("allreduce/" r "/" big, "exact_over_gloo")), "")
      row("  the same in CPU time", times(get("allreduce/" r "/" big, "exact_over_gloo_cpu")), "")
      row("exact all-reduce / raw TCP of as many bytes, 2.75 million, " r " ranks", times(get("allreduce/" r "/" big, "exact_over_raw")), "")
    }
    e = "exact_sum/" small
    row("exact sum of a value / copying it (add, then convert back)", times((get(e, "quantize_add_ns") + get(e, "dequantize_ns")) / get(e, "memcpy_float_ns")), "")
    # With one worker: all 8 logical shards are quantized here, 7 of them added, and the sum is converted back.
    ns = get(e, "quantize_store_ns") + 7 * get(e, "quantize_add_ns") + get(e, "dequantize_ns")
    row("exact sum / step of this job, 1 worker", percent(ns * small * 1e-9 / get("job", "median_wall_1")), "<= 5%")
    row("SIGKILL of one of 3 workers to the next step of both others, median", sprintf("%.0f ms", get("recovery", "median_ms")), "<= 100 ms")
    row("  p95 of " get("recovery", "kills") " kills", sprintf("%.0f ms", get("recovery", "p95_ms")), "<= 250 ms")
    row("  in steps of this job, median", times(get("recovery", "median_ms") / get("recovery", "step_ms")), "")
    row("durable shards, " get("shard_write", "mib") " MiB / dd conv=fsync", times(get("shard_write", "save_over_dd")), ">= 0.90x")
    row("training stopped for a save (its copy) / step, 1 worker", percent(get("job", "copy_share_1")), "")
    row("training stopped for a save (its copy) / step, 2 workers", percent(get("job", "copy_share_2")), "")
    row("  the step after a save is longer by, 2 workers", percent(get("job", "save_share_2")), "")
    row("samples/s, 2 workers / 1 worker (1 thread each, same global batch)", times(get("job", "speedup")), "")
    row("  scaling efficiency (strong)", percent(get("job", "speedup") / 2), "")
  }' "$figures"
