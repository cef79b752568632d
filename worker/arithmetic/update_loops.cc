// LS_CODE is the instruction set that this is compiled for: see BUILD.bazel.
#include "worker/arithmetic/update_loops.h"

namespace lockstep::worker::LS_CODE {
namespace {

using device::UpdateFormula;
using device::UpdateScalars;

template <bool kDecays, bool kHasMomentum, bool kNesterov, bool kAverages>
void Sgd(const UpdateScalars& scalars, const UpdateArrays& u) {
  const UpdateScalars s = scalars;
  float* value = u.value;
  float* buffers = u.slots[0];
  float* averages = u.average;
#pragma GCC ivdep
  for (int64_t i = 0; i < u.count; ++i) {
    float buffer = kHasMomentum ? buffers[i] : 0.0f;
    const float moved = device::SgdElement<kDecays, kHasMomentum, kNesterov>(s, u.gradient[i], value[i], buffer);
    if (kHasMomentum) buffers[i] = buffer;
    value[i] = moved;
    if (kAverages) averages[i] = device::MovedAverage(s, averages[i], moved);
  }
}

template <bool kDecays, bool kAverages>
void SgdBy(const UpdateFormula& formula, const UpdateScalars& s, const UpdateArrays& u) {
  if (!formula.momentum) return Sgd<kDecays, false, false, kAverages>(s, u);
  if (formula.nesterov) return Sgd<kDecays, true, true, kAverages>(s, u);
  Sgd<kDecays, true, false, kAverages>(s, u);
}

template <bool kDecays, bool kAverages>
void Adam(const UpdateScalars& scalars, const UpdateArrays& u) {
  const UpdateScalars s = scalars;
  float* values = u.value;
  float* means = u.slots[0];
  float* squares = u.slots[1];
  float* averages = u.average;
#pragma GCC ivdep
  for (int64_t i = 0; i < u.count; ++i) {
    float mean = means[i];
    float square = squares[i];
    const float moved = device::AdamElement<kDecays>(s, u.gradient[i], values[i], mean, square);
    means[i] = mean;
    squares[i] = square;
    values[i] = moved;
    if (kAverages) averages[i] = device::MovedAverage(s, averages[i], moved);
  }
}

template <bool kAverages>
void UpdateBy(const UpdateFormula& formula, const UpdateScalars& scalars, const UpdateArrays& arrays) {
  if (formula.kind == UpdateFormula::Kind::kAdam) {
    return formula.decays ? Adam<true, kAverages>(scalars, arrays) : Adam<false, kAverages>(scalars, arrays);
  }
  formula.decays ? SgdBy<true, kAverages>(formula, scalars, arrays) : SgdBy<false, kAverages>(formula, scalars, arrays);
}

}  // namespace

void UpdateElements(const UpdateFormula& formula, const UpdateScalars& scalars, const UpdateArrays& arrays) {
  if (arrays.average != nullptr) return UpdateBy<true>(formula, scalars, arrays);
  UpdateBy<false>(formula, scalars, arrays);
}

}  // namespace lockstep::worker::LS_CODE
