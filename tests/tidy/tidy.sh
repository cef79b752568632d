#!/usr/bin/env bash
# Reads the tree and holds what the house style asks for. One line per finding (file:line: rule), one verdict per rule,
# and the counts last. Nothing is changed. Needs git, clang-format, Bazel and a checkout.
set -euo pipefail
cd "$(dirname "$0")/../.."

mapfile -t sources < <(git ls-files '*.h' '*.cc' '*.cu' '*.cuh')
mapfile -t headers < <(printf '%s\n' "${sources[@]}" | grep '\.h$')
mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
mapfile -t pages < <(git ls-files '*.md')
passed=0 failed=0

rule() {  # NAME COMMAND…: the rule holds when the command prints nothing.
  local name=$1 findings
  shift
  findings=$("$@" 2>&1 || true)
  if [ -z "$findings" ]; then
    passed=$((passed + 1))
    return
  fi
  failed=$((failed + 1))
  printf 'tidy: %s\n%s\n' "$name" "$findings"
}

long_files() { wc -l "${sources[@]}" | awk '$2 != "total" && $1 > 400 { print $2 ": " $1 " lines; split it by operation" }'; }

# A function is what opens a brace in column 0 and closes it there; namespaces, types and macros do not count.
long_functions() {
  awk 'FNR == 1 { open = 0 }
    /^[A-Za-z].*\{$/ && !/^(namespace|class|struct|enum|union|extern|static const|constexpr|const) / { open = FNR; name = $0 }
    /^}$/ { if (open && FNR - open > 70) print FILENAME ":" open ": " FNR - open " lines: " name; open = 0 }
    /^}[;, ]/ { open = 0 }' "${sources[@]}"
}

header_opening() {
  for header in "${headers[@]}"; do
    awk -v file="$header" '/^#(include|ifndef|pragma)/ { exit }
      /^\/\// { seen = 1; if ($0 ~ /Threading:|[Tt]hread-safe|[Tt]hread-compatible|[Ii]mmutable|[Oo]wned by/) threading = 1 }
      END { if (!seen) print file ":1: no opening comment"; else if (!threading) print file ":1: the opening comment has no threading word" }' "$header"
    guard="LOCKSTEP_$(echo "$header" | tr 'a-z/.' 'A-Z__')_"
    grep -q "^#ifndef $guard\$" "$header" || echo "$header:1: the include guard is not $guard"
  done
}

only_in() {  # PATTERN FOLDER…: the include may stand in these folders alone.
  local pattern=$1 file line folder ok
  shift
  { grep -nE "^ *# *include [<\"]($pattern)" "${sources[@]}" /dev/null || true; } | while IFS=: read -r file line _; do
    ok=0
    for folder in "$@"; do [[ $file == "$folder"* ]] && ok=1; done
    [ $ok = 1 ] || echo "$file:$line: includes $pattern, which belongs to $*"
  done
}

# For awk: the name that a line declares at the outermost level, or "".
name_of='function name_of(line) {
  if (line ~ /^(typedef|namespace|using namespace|friend|extern|static_assert|template|TEST_CASE|#|\/\/|LS_|return)/) return ""
  if (line ~ /^using [A-Za-z_0-9]+ *=/) { sub(/^using /, "", line); sub(/ *=.*/, "", line); return line }
  if (line ~ /^(class|struct|enum class|enum|union) /) {
    sub(/^(class|struct|enum class|enum|union) /, "", line); sub(/[^A-Za-z_0-9].*/, "", line); return line }
  if (line !~ /^[A-Za-z]/) return ""
  if (line ~ /^[A-Za-z_][^=(]*[ *&>][A-Za-z_0-9]+\(/) { sub(/\(.*/, "", line) }
  else if (line ~ /^[A-Za-z_][^=({]*[ *&>][A-Za-z_0-9]+(\[[^]]*\])* *(=|\{|;)/) { sub(/(\[[^]]*\])* *(=|\{|;).*/, "", line) }
  else return ""
  if (line ~ /::[A-Za-z_0-9]+$/) return ""
  sub(/.*[^A-Za-z_0-9]/, "", line); return line }'

# A source's own name that a header of an enclosing namespace has too would hide it from sources that are compiled behind
# it (docs/design/0028-build-time.md). Headers of tests/ do not count: their users are tests, which fail.
hiding_names() {
  local declared=$name_of'
    FNR == 1 { space = ""; own = 0 }
    /^namespace lockstep[a-z_:]* \{/ { space = $2; own = 0; next }
    /^namespace \{/ { own = 1; next }
    /^\}  \/\/ namespace$/ { own = 0; next }'
  {
    awk "$declared"'
      !own && space != "" { name = name_of($0); if (name != "") print "header", space, name, FILENAME ":" FNR }' \
      $(printf '%s\n' "${headers[@]}" | grep -v '^tests/')
    awk "$declared"'
      own && space != "" { name = name_of($0); if (name != "") print "source", space, name, FILENAME ":" FNR }' \
      $(printf '%s\n' "${sources[@]}" | grep '\.cc$')
  } | awk '$1 == "header" { if (!(($2, $3) in at)) at[$2, $3] = $4; next }
    { space = $2
      while (sub(/::[a-z_0-9]+$/, "", space)) if ((space, $3) in at) print $4 ": " $3 " hides that of " at[space, $3] }'
}

# Sources of one target are compiled together (bazel/joined_sources.bzl), and another one may change with whom: so what
# each has for itself has a name of its own in all of them. Aliases of one type may stand in several. Of kernels, whose
# families know nothing of each other, the compiler says where two names meet.
shared_names() {
  awk "$name_of"'
    FNR == 1 { space = ""; own = 0 }
    /^namespace lockstep[a-z_:]* \{/ { space = $2; own = 0; next }
    /^namespace \{/ { own = 1; next }
    /^\}  \/\/ namespace$/ { own = 0; next }
    own && space != "" && !/^using / { name = name_of($0); if (name != "") print "name", FILENAME, space, name, FNR }' \
    $(printf '%s\n' "${sources[@]}" | grep '\.cc$') |
    cat - <(bazel query --noshow_progress --ui_event_filters=-info 'kind(joined_sources, //... - //worker/kernels/...)' --output=build |
      awk '/^joined_sources\(/ { target++ }
        / srcs = / { while (match($0, /"[^"]+"/)) {
          file = substr($0, RSTART + 3, RLENGTH - 4); sub(/:/, "/", file); print "joined", file, target
          $0 = substr($0, RSTART + RLENGTH) } }') |
    awk '$1 == "name" { names[$2] = names[$2] " " $3 "::" $4 ":" $5; next }
      { count = split(names[$2], list, " ")
        for (i = 1; i <= count; i++) {
          name = list[i]; sub(/:[0-9]+$/, "", name); line = list[i]; sub(/.*:/, "", line)
          if (($3, name) in at && at[$3, name] != $2) print $2 ":" line ": " name " is a name of " at[$3, name] " too"
          at[$3, name] = $2 } }'
}

# Two types of one name in one namespace are one type to the linker, which keeps one of their destructors for both.
types_defined_twice() {
  awk 'FNR == 1 { space = ""; own = 0 }
    /^namespace lockstep[A-Za-z_:]* \{/ { space = $2; next }
    /^namespace \{/ { own = 1 }
    /^\}  \/\/ namespace$/ { own = 0 }
    !own && /^(class|struct|enum class|enum|union) / {
      name = $0; sub(/^(class|struct|enum class|enum|union) /, "", name); sub(/^(\[\[[^]]*\]\]|alignas\([^ ]*\)) /, "", name)
      if (name !~ /\{/ || name ~ /^[A-Za-z_0-9]+(<|::)/) next  # declared only, specialised, or nested
      sub(/[^A-Za-z_0-9].*/, "", name)
      if ((space, name) in at) print FILENAME ":" FNR ": " space "::" name " is defined at " at[space, name] " too"
      at[space, name] = FILENAME ":" FNR }' "${sources[@]}"
}

vendor_headers() {
  only_in 'dnnl|oneapi/dnnl' worker/kernels/cpu/
  only_in 'gloo/' tests/bench/
  only_in 'spdlog/|fmt/' common/log/
  only_in 'yaml-cpp/' common/job/
  only_in 'CLI/' deploy/cli/ tests/
  only_in 'nlohmann/' common/ chief/ deploy/cli/ tests/ worker/fakes/fake_cudnn worker/profile/ worker/notice/clouds
  only_in 'isa-l|isal|crc.h' common/digest/
  only_in 'openssl/' common/digest/ common/net/ worker/collectives/sockets/
  only_in 'curl/|tinyxml2' common/object_store/
  only_in 'zlib' worker/data/ worker/profile/ tests/
  only_in 'png.h' chief/events/ worker/data/
  only_in 'turbojpeg' worker/data/
  only_in 'grpcpp/|grpc/' common/net/ common/etcd/ chief/server/ worker/session/ worker/upload/ deploy/cli/ tests/
  only_in 'onnx/' common/graph/onnx_import/ tests/conformance/onnx/
  only_in 'cuda|nccl|cudnn|cublas' worker/device/cuda/ worker/collectives/nccl/ worker/cuda_library/ worker/fakes/
}

layering() {  # common knows nobody; chief and worker do not know each other; nobody knows deploy or tests.
  local layer forbidden
  while read -r layer forbidden; do
    { grep -nE "^#include \"($forbidden)/" "${sources[@]}" /dev/null || true; } | grep "^$layer/" | sed "s/$/   ($layer must not know it)/" || true
  done <<'LAYERS'
common chief|worker|deploy|tests
chief worker|deploy|tests
worker chief|deploy|tests
deploy tests
LAYERS
}

# Of two folders one may include the other, directly or by way of others, never both. Tests may look where they like.
folder_cycles() {
  grep -HoE '^#include "(bazel|chief|common|deploy|worker)/[^"]+"' "${sources[@]}" |
    grep -vE '^tests/|_test\.cc:' |
    sed -E 's|^(.*)/[^/]*:#include "(.*)/[^/]*"$|\1 \2|' | awk '$1 != $2' | sort -u |
    { tsort 2>&1 >/dev/null || true; } |
    awk '/input contains a loop/ { if (rings++) exit; print "these folders include each other in a ring:"; next } { sub(/^tsort: /, "  "); print }'
}

forbidden_words() {
  grep -nE 'absl::Mutex|absl::CondVar' "${sources[@]}" | grep -vE ':[0-9]+: *//' | sed 's/$/   (use common\/sync: packaged Abseil is not instrumented)/' || true
  grep -nE 'sleep_for|SleepFor|usleep\(|[^a-z_]sleep\(' $(git ls-files '*_test.cc') /dev/null | sed 's/$/   (tests do not sleep)/' || true
  grep -nE 'TODO|FIXME|\bXXX\b' "${sources[@]}" "${scripts[@]}" | grep -v '^tests/tidy/tidy.sh' || true
  git grep -nIE '/(work|farm)/|/tmp/[a-z]+/|bazel-out/k8' -- . ':!tests/tidy/tidy.sh' || true
}

reaches() {  # Which of the libraries `to` (labels) `from` (a query) depends on.
  local from=$1 to=$2 found
  if ! found=$(bazel query --noshow_progress --ui_event_filters=-info,-warning "deps($from) intersect set($to)" 2>&1); then
    echo "nobody can tell what $from reaches: $found"
  elif [ -n "$found" ]; then
    sed "s|^|$from reaches |" <<< "$found"
  fi
}

pure_cores() {  # The state machines reach no I/O library.
  local core
  for core in //chief/core/... //worker/session:session_core //deploy/supervisor:policy //common/protocol; do
    reaches "$core" '//bazel/system:grpc //common/log //bazel/system:dnnl //bazel/system:gloo'
  done
}

# A process that loads a library has what the library links twice, and protobuf ends a process that has a message twice.
loaded_libraries() {
  reaches "//worker/cuda_library/..." '//bazel/system:protobuf //bazel/system:grpc //common/log'
  reaches 'filter("[.]so$", //worker/fakes/...)' '//bazel/system:protobuf //bazel/system:grpc //common/log'
}

# In files compiled for one instruction set (by name or target) a weak symbol could serve every caller in the program.
weak_symbols() {
  local object
  for object in $(find -L bazel-bin/worker bazel-bin/common -path '*_avx2*.o' -o -path '*_avx512*.o' 2>/dev/null); do
    nm -C "$object" | awk -v object="$object" '$2 ~ /^[WVu]$/ { print object ": weak symbol " $0 }'
  done
}

raw_attributes() {  # ONNX attribute protos are read by the importer, which hands them to the op families.
  grep -nE 'AttributeProto' "${sources[@]}" | grep -vE '^(common/graph/(ops|onnx)|tests/conformance/onnx)' || true
}

links() {
  local page target
  for page in "${pages[@]}"; do
    { grep -oE '\]\([^)#: ]+' "$page" || true; } | sed 's/^](//' | while read -r target; do
      [ -e "$(dirname "$page")/$target" ] || echo "$page: the link $target leads nowhere"
    done
  done
}

pages_without_place() { docs/site.sh --check 2>&1 || true; }

# What a run leaves behind is easily committed with the rest.
root_entries() {
  git ls-files | cut -d/ -f1 | sort -u |
    grep -vxE '\.(bazelrc|ci|clang-format|gitignore)|(CHANGELOG|CONTRIBUTING|README)\.md|BUILD\.bazel|LICENSE|WORKSPACE|bazel|chief|common|deploy|docs|protos|tests|worker' |
    sed 's/$/: does not belong at the root/' || true
}

# The wall clock jumps: it may be shown and stored, never waited by.
wall_clock() {
  grep -nE 'absl::Now\(\)|system_clock::now' "${sources[@]}" |
    grep -vE '^(common/(log|clock)/|common/object_store/s3_object_store\.cc|tests/|chief/server/(job_store|chief_loop|chief_loop_records|chief_loop_hooks)\.cc|chief/watch/page_api\.cc|deploy/cli/(chief_place|drain|job_state|logs|status)\.cc)' |
    grep -vE '_test\.cc:|(set_deadline|Shutdown|WaitForConnected)\(' || true
}

formatting() { clang-format --dry-run --ferror-limit=1 "${sources[@]}" 2>&1 | grep -E 'warning|error' || true; }

rule 'files stay under 400 lines' long_files
rule 'functions stay under 70 lines' long_functions
rule 'headers open with what they are and how they thread' header_opening
rule 'no name of a source hides one of a header' hiding_names
rule 'sources that are compiled together share no name' shared_names
rule 'no type is defined twice' types_defined_twice
rule 'each vendor header has one home' vendor_headers
rule 'layers know only what lies below' layering
rule 'no ring of folders' folder_cycles
rule 'forbidden words' forbidden_words
rule 'the cores are pure' pure_cores
rule 'what a process loads brings no library that it has' loaded_libraries
rule 'no weak symbols in files of one instruction set' weak_symbols
rule 'attributes are parsed once' raw_attributes
rule 'links lead somewhere' links
rule 'the root holds the project alone' root_entries
rule 'every page has its place' pages_without_place
rule 'the wall clock is waited by nowhere' wall_clock
rule 'mutations of the protocol fit its code' tests/simulation/mutate.py --check
rule 'clang-format' formatting
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
