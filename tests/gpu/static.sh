#!/usr/bin/env bash
# Reads the kernels in the built library for CUDA and holds what can be proved without a GPU: one verdict per rule, each
# finding below it, the ten heaviest kernels, and the counts last. static_budget.txt lists the exceptions.
#   FILE…          libraries or objects to read instead of the built library
# Needs cuobjdump (cuobjdump.sh), c++filt and readelf. Everything is skipped where there is no library to read.
set -euo pipefail
files=()
for file; do files+=("$(realpath -e "$file")"); done
cd "$(dirname "$0")/../.."

budget=tests/gpu/static_budget.txt
library=bazel-bin/worker/cuda_library/liblockstep_cuda.so
[ $# -gt 0 ] || files=("$library")
rules=9

skip() { echo "static: skipped: $1"; echo "0 passed, 0 failed, $rules skipped"; exit 0; }
[ $# -gt 0 ] || [ -f "$library" ] || skip "there is no toolkit of CUDA here, or $library is not built"
cuobjdump=$(tests/gpu/cuobjdump.sh) || skip "there is no cuobjdump; the line above says why"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# kernels: architecture, name, registers, stack, static shared memory, from machine code.
# ptx: name, bytes of local arrays, from PTX.     code: name, instruction, count, of those that a rule asks about.
# parts: one line for each file of machine code or PTX: kind and architecture.
for file in "${files[@]}"; do
  { "$cuobjdump" -lelf "$file" 2>/dev/null || true; } |
    sed -n 's/^ELF file.*\.\(sm_[0-9a-z]*\)\.cubin$/machine \1/p' >>"$work/parts"
  "$cuobjdump" -res-usage "$file" 2>"$work/errors" | awk '
    /^arch = / { arch = $3 }
    / Function / { name = $2; sub(/:$/, "", name) }
    /REG:/ { gsub(/[A-Z]+:/, ""); print arch "\t" name "\t" $1 "\t" $2 + $4 "\t" $3 }' >>"$work/mangled"
  "$cuobjdump" -ptx "$file" 2>>"$work/errors" | awk -v parts="$work/parts" -v code="$work/code.mangled" \
    -v data="$work/ptx.mangled" '
    /^\.target / { print "ptx " $2 >>parts }
    /\.(entry|func) / {
      end_of()
      name = $0
      sub(/.*\.entry /, "", name); sub(/.*\.func (\([^)]*\) )?/, "", name); sub(/[( ].*/, "", name)
      next }
    /^\.local / { if (match($0, /\[[0-9]+\]/)) arrays += substr($0, RSTART + 1, RLENGTH - 2); next }
    # A line that begins with a bracket or holds several instructions is from assembly in the source.
    /^[ \t{@a-z]/ {
      n = split($0, part, /[;{}]/)
      for (i = 1; i <= n; ++i) {
        op = part[i]; sub(/^[ \t]*(@!?%p[0-9]+[ \t]+)?/, "", op); sub(/[ \t].*/, "", op)
        if (op ~ /\.(approx|ftz|full)|^(ex2|lg2|sin|cos|tanh|rsqrt|fma|mad|add|sub|mul)\./) ++seen[op]
        else if (op ~ /^(atom|red|multimem|cp\.reduce|mma|wmma|wgmma|tcgen05)\./) ++seen[op]
      } }
    function end_of() {
      if (name != "") print name "\t" arrays + 0 >>data
      for (op in seen) { print name "\t" op "\t" seen[op] >>code; delete seen[op] }
      arrays = 0; name = "" }
    END { end_of() }'
done
touch "$work"/{parts,mangled,code.mangled,ptx.mangled}
if [ -s "$work/errors" ]; then sed 's/^/static: cuobjdump: /' "$work/errors"; fi

# Names as the source has them, without what all kernels have in common.
plain() {
  c++filt | sed -E 's/lockstep::(device::cuda::)?//g; s/\(anonymous namespace\):://g; s/\tvoid /\t/; s/^void //'
}
sort -u "$work/mangled" | plain >"$work/kernels"
sort -u "$work/ptx.mangled" | plain >"$work/ptx"
sort -u "$work/code.mangled" | plain >"$work/code"
: >"$work/used"

passed=0 failed=0
rule() {  # NAME COMMAND…: the rule holds when the command prints nothing.
  local name=$1 findings
  shift
  findings=$("$@" || true)
  if [ -z "$findings" ]; then
    passed=$((passed + 1))
    echo "ok    $name"
  else
    failed=$((failed + 1))
    echo "FAIL  $name"
    # A template may make hundreds of kernels.
    awk 'NR <= 20 { print "      " substr($0, 1, 230) } END { if (NR > 20) print "      and " NR - 20 " more" }' \
      <<<"$findings"
  fi
}

# For awk programs: allowed(kernel, value), whether a line of the budget allows a kernel this many bytes or registers,
# or this instruction. Such lines are noted in `used`.
reading_budget='
  BEGIN {
    while ((getline line <budget) > 0) {
      if (line !~ /^[a-z]/ || split(line, word, /[ \t]+/) < 4 || word[1] != kind) continue
      limit[++lines] = word[2]; pattern[lines] = word[3]
    } }
  function allowed(name, value,   i) {
    for (i = 1; i <= lines; ++i) {
      if (name !~ pattern[i] || (value ~ /^[0-9]+$/ ? value + 0 > limit[i] + 0 : value != limit[i])) continue
      print kind, limit[i], pattern[i] >>used
      return 1
    }
    return 0 }'
with_budget() {  # KIND PROGRAM FILE…
  local kind=$1 program=$2
  shift 2
  awk -F'\t' -v budget="$budget" -v used="$work/used" -v kind="$kind" "$reading_budget $program" "$@" ||
    echo "$budget could not be read"
}

modules() {  # Each object with kernels has one record of 24 bytes that hands them to the runtime.
  local file
  for file in "${files[@]}"; do
    readelf -SW "$file" | awk '/ \.nvFatBinSegment/ { sub(/.*PROGBITS/, ""); print $3 }' |
      while read -r size; do echo $((16#$size / 24)); done
  done | awk '{ n += $1 } END { print n + 0 }'
}
architectures() {
  local objects machine ptx
  objects=$(modules)
  machine=$(grep -c '^machine sm_90$' "$work/parts" || true)
  ptx=$(grep -c '^ptx ' "$work/parts" || true)
  [ "$objects" -gt 0 ] || echo "no object has kernels"
  [ "$machine" = "$objects" ] || echo "$machine of $objects objects with kernels have machine code for sm_90"
  [ "$ptx" = "$objects" ] || echo "$ptx of $objects objects with kernels have PTX for later GPUs"
  # PTX for sm_90a or sm_100f runs on no later GPU.
  awk '$1 == "ptx" && $2 !~ /^sm_[0-9]+$/ { print "PTX for " $2 " alone" }' "$work/parts" | sort -u
}
same_kernels() {  # With PTX and machine code from different builds a later GPU would compute something else.
  awk -F'\t' '$1 == "sm_90" { print $2 }' "$work/kernels" | sort -u >"$work/of.machine"
  cut -f1 "$work/ptx" | sort -u >"$work/of.ptx"
  comm -23 "$work/of.machine" "$work/of.ptx" | sed 's/$/: no PTX/'
  comm -13 "$work/of.machine" "$work/of.ptx" | sed 's/$/: no machine code for sm_90/'
}
# What a kernel keeps in local memory beyond the arrays of its source was spilled from registers.
spills() {
  with_budget spill '
    FNR == NR { arrays[$1] = $2; next }
    { spilled = $4 - arrays[$2] }
    spilled > 0 && !allowed($2, spilled) { print $1 ": " spilled " bytes spilled, " $3 " registers: " $2 }' \
    "$work/ptx" "$work/kernels"
  with_budget array '
    FNR == NR { arrays[$1] = $2; next }
    { kept = $4 < arrays[$2] ? $4 : arrays[$2] }
    kept > 0 && !allowed($2, kept) { print $1 ": arrays of " kept " bytes in local memory: " $2 }' \
    "$work/ptx" "$work/kernels"
}
registers() {  # With these a multiprocessor holds two blocks of 256 threads.
  with_budget registers '$3 > 128 && !allowed($2, $3) { print $1 ": " $3 " registers: " $2 }' "$work/kernels"
  with_budget shared '
    $5 > 16384 && !allowed($2, $5) { print $1 ": " $5 " bytes of shared memory: " $2 }' "$work/kernels"
}
code_like() {  # CONDITION: instructions that only a line of the budget allows.
  with_budget instruction "$1 && !allowed(\$1, \$2) { print \$3 \" \" \$2 \": \" \$1 }" "$work/code"
}
contractible() {  # ptxas and drivers may join a multiplication and an addition that do not say how they round.
  code_like '$2 ~ /^(add|sub|mul|mad)\..*f(16|16x2|32|64)$/ && $2 !~ /\.r[nzmp]/'
}
written_fma() {
  with_budget fma '
    $2 ~ /^fma\./ || $2 ~ /^mad\.r/ {
      found = 0
      for (i = 1; i <= lines; ++i) if ($1 ~ pattern[i]) { print kind, limit[i], pattern[i] >>used; found = 1 }
      if (!found) print $3 " " $2 ", and no line of the budget says what source writes it: " $1 }' "$work/code"
  [ "$own" = 1 ] || return 0
  awk '$1 == "fma" { print $2 }' "$budget" | sort -u >"$work/fma.budget"
  grep -rlE '\b(__)?fmaf?(_rn)?\(' common worker --include='*.h' --include='*.cc' --exclude='*_test.cc' \
    --exclude='cpu*' |
    grep -vE '^worker/(fakes|kernels/cpu)/' | sort -u >"$work/fma.source" || true
  comm -23 "$work/fma.source" "$work/fma.budget" | sed 's/$/ writes fma; no line of the budget says for which kernels/'
  comm -13 "$work/fma.source" "$work/fma.budget" | sed 's/$/ writes no fma; a line of the budget says it does/'
}
unused() {  # An exception that nothing needs would hide the next one.
  awk '/^[a-z]/ { print $1, $2, $3 }' "$budget" | sort -u | comm -23 - <(sort -u "$work/used") |
    sed 's/^/no kernel needs the line /'
  awk '/^[a-z]/ && NF < 5 { print "no reason: " $0 }' "$budget"
}

own=$(($# == 0))
rule 'every object has machine code for Hopper, and PTX for later GPUs' architectures
rule 'machine code and PTX have the same kernels' same_kernels
rule 'no spills, and no arrays in local memory' spills
rule 'registers and shared memory' registers
rule 'no approximate and no flush-to-zero instruction' \
  code_like '$2 ~ /\.(approx|ftz|full)|^(ex2|lg2|sin|cos|tanh|rsqrt)\./'
rule 'no atomic instruction and no matrix unit' \
  code_like '$2 ~ /^(atom|red|multimem|cp\.reduce|mma|wmma|wgmma|tcgen05)\./'
rule 'sums and products say how they round' contractible
rule 'what is fused is written so' written_fma
[ "$own" = 0 ] || rule 'every line of the budget is needed' unused

of() { awk -v kind="$1" '$1 == kind { print $2 }' "$work/parts" | sort -u | paste -sd ' '; }
echo "$(cut -f2 "$work/kernels" | sort -u | wc -l) kernels, machine code for $(of machine), PTX for $(of ptx)"
echo 'registers  local  shared  kernel: the ten with most local memory, then registers'
sort -t$'\t' -k4,4nr -k3,3nr -k5,5nr "$work/kernels" |
  awk -F'\t' 'NR <= 10 { printf "%9d %6d %7d  %.90s\n", $3, $4, $5, $2 }'
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
