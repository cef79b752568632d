#!/usr/bin/env bash
# Lets libFuzzer search for inputs that break a target, under AddressSanitizer and UndefinedBehaviorSanitizer.
#   tests/fuzz/hunt.sh MINUTES [TARGET…]     every target, or these, MINUTES each
#   --jobs N         so many at a time (2)
#   --out DIR        where corpora, logs and finds go (default: a new folder in /tmp); with one of before, goes on there
#   --base DIR       Bazel's output base (default: one of this checkout, in ~/.cache/lockstep-fuzz)
# A target stops at its first find. Nothing in the tree changes. Says per target: executions, coverage (cov: edges, ft:
# features), files of the corpus, finds. Exit 0: no find. 1: finds, or a target that ended in another way. 64: usage.
set -euo pipefail
cd "$(dirname "$0")/../.."

jobs=2 out='' base=$HOME/.cache/lockstep-fuzz/$(pwd | sha256sum | cut -c1-16) minutes='' targets=()
usage() { echo "tests/fuzz/hunt.sh: $1 (see the head of the file)" >&2; exit 64; }
while [ $# -gt 0 ]; do
  case "$1" in
    --jobs) jobs=${2:?--jobs needs a number}; shift ;;
    --out) out=${2:?--out needs a folder}; shift ;;
    --base) base=${2:?--base needs a folder}; shift ;;
    -*) usage "unknown argument '$1'" ;;
    *) if [ -z "$minutes" ]; then minutes=$1; else targets+=("$1"); fi ;;
  esac
  shift
done
[[ $minutes =~ ^[1-9][0-9]*$ ]] || usage "MINUTES is '$minutes'; it needs a number from 1"
[[ $jobs =~ ^[1-9][0-9]*$ ]] || usage "--jobs is '$jobs'; it needs a number from 1"
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls tests/fuzz/corpus)
for target in "${targets[@]}"; do
  [ -f "tests/fuzz/${target}_fuzzer.cc" ] || usage "there is no target '$target'"
done

deploy/packages.sh build fuzz

# Compiler and flags differ from those of the normal build, whose outputs have the same paths: an output base of its own
# keeps both, and without links in the tree bazel-bin stays what it was.
read -ra bazel <<<"${LOCKSTEP_BAZEL:-bazel}"
bazel+=("--output_base=$base")
flags=(--config=libfuzzer --symlink_prefix=/ --noshow_progress --ui_event_filters=-info)
export CC=clang-14
mapfile -t labels < <(printf '//tests/fuzz:%s_libfuzzer\n' "${targets[@]}")
"${bazel[@]}" build "${flags[@]}" "${labels[@]}"
bin=$("${bazel[@]}" info "${flags[@]}" bazel-bin)/tests/fuzz
"${bazel[@]}" shutdown

out=${out:-$(mktemp -d /tmp/lockstep-hunt-XXXXXX)}
# Packaged libraries are not instrumented: containers that they fill look overflown.
export ASAN_OPTIONS=detect_container_overflow=0:detect_leaks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

seed() {  # TARGET: its corpus, as a copy; for ONNX the models of its test suite too.
  mkdir -p "$out/$1/corpus" "$out/$1/finds"
  cp tests/fuzz/corpus/"$1"/* "$out/$1/corpus/"
  [ "$1" = onnx ] || return 0
  find /usr/share/libonnx-testdata/data -name model.onnx -size -64k | while read -r model; do
    cp "$model" "$out/$1/corpus/$(basename "$(dirname "$model")").onnx"
  done
}

count_finds() {  # TARGET. What was only slow is kept beside them, and is none.
  find "$out/$1/finds" -type f ! -name 'slow-unit-*' | wc -l
}

hunt() {  # TARGET
  local log=$out/$1/log code=0 before last executions finds fuzzer
  mkdir -p "$out/$1"
  touch "$out/$1/failed"  # until it is known that it did not
  seed "$1"
  before=$(count_finds "$1")
  nice -n 10 "$bin/${1}_libfuzzer" -max_total_time=$((minutes * 60)) -max_len=65536 -timeout=20 -rss_limit_mb=2560 \
    -malloc_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$out/$1/finds/" "$out/$1/corpus" >"$log" 2>&1 &
  fuzzer=$!
  trap 'kill $fuzzer' TERM
  wait $fuzzer || code=$?
  last=$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -n 1) || true
  executions=$(sed -nE 's/^stat::number_of_executed_units: *([0-9]+)$/\1/p' "$log")
  finds=$(($(count_finds "$1") - before))
  printf '%-17s %10s executions  %-20s corpus: %5d  finds: %d\n' "$1" "${executions:-?}" "${last:-cov: ?}" \
    "$(find "$out/$1/corpus" -type f | wc -l)" "$finds"
  if [ "$code" = 0 ] && [ "$finds" = 0 ]; then
    rm "$out/$1/failed"
    return
  fi
  grep -hE -m 3 'ERROR: |runtime error|broken invariant' "$log" || tail -n 3 "$log"
}

trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
for target in "${targets[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
  hunt "$target" &
done
wait
echo "corpora, logs and finds: $out/TARGET/{corpus,log,finds}"
for target in "${targets[@]}"; do [ ! -f "$out/$target/failed" ] || exit 1; done
