#include "worker/arithmetic/element_update.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lockstep::worker {
namespace {

constexpr size_t kNormBlock = 4096;

using UpdateFunction = void (*)(const device::UpdateFormula&, const device::UpdateScalars&, const UpdateArrays&);

// The fastest one that this machine has; all give the same bits.
UpdateFunction BestUpdate() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return &avx512::UpdateElements;
  if (__builtin_cpu_supports("avx2")) return &avx2::UpdateElements;
#endif
  return &portable::UpdateElements;
}

}  // namespace

void UpdateElements(const device::UpdateFormula& formula, const device::UpdateScalars& scalars,
                    const UpdateArrays& arrays) {
  static const UpdateFunction update_elements = BestUpdate();
  UpdateArrays moving = arrays;
  if (scalars.copies_average) moving.average = nullptr;
  std::vector<double> scratch(static_cast<size_t>(ScratchDoubles(formula, arrays.count, arrays.shape)));
  moving.scratch = scratch.data();
  update_elements(formula, scalars, moving);
  if (arrays.average != nullptr && scalars.copies_average) std::copy_n(arrays.value, arrays.count, arrays.average);
}

double SumOfSquares(absl::Span<const float> values) {
  double sum = 0;
  for (size_t begin = 0; begin < values.size(); begin += kNormBlock) {
    const size_t end = std::min(values.size(), begin + kNormBlock);
    double block = 0;
    for (size_t i = begin; i < end; ++i) {
      const double value = values[i];
      block += value * value;
    }
    sum += block;
  }
  return sum;
}

}  // namespace lockstep::worker
