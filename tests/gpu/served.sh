# Sourced by run.sh and bench.sh: whether libraries serve what they should. An own kernel for a product, a convolution
# or attention may be many times slower than a library's.

# Reads what `lockstep check --plan` prints about a job of precision fp32, tf32 or bf16. Prints the nodes that libraries
# should serve and do not; `served_summary` counts them. False if there is any, or if the plan has no such node at all.
# Attention in float32 has own kernels by design.
libraries_serve() {  # PRECISION PLAN
  local precision=$1 plan=$2 all slow
  local ops='Gemm|MatMul|BatchMatMul|Conv|ConvTranspose|ConvGradInput|ConvGradWeight'
  [ "$precision" != bf16 ] || ops+='|Attention|AttentionGrad'
  all=$(awk -v ops="^($ops)$" '/^      [^ ]/ && NF >= 3 && $(NF - 1) ~ ops' "$plan")
  slow=$(grep -E ' (widened:|own:)[^ ]*$' <<<"$all" || true)
  served_summary="$(grep -c . <<<"$all" || true) nodes, $(grep -c . <<<"$slow" || true) by own kernels"
  [ -z "$slow" ] || printf '%s\n' "$slow"
  [ -n "$all" ] && [ -z "$slow" ]
}
