// LS_CODE is the instruction set that this is compiled for: see BUILD.bazel.
#include "worker/arithmetic/update_loops.h"

#include "worker/arithmetic/norm_loops.h"

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

template <bool kDecays, bool kHasMomentum, bool kAverages>
void RmsProp(const UpdateScalars& scalars, const UpdateArrays& u) {
  const UpdateScalars s = scalars;
  float* values = u.value;
  float* squares = u.slots[0];
  float* buffers = u.slots[1];
  float* averages = u.average;
#pragma GCC ivdep
  for (int64_t i = 0; i < u.count; ++i) {
    float square = squares[i];
    float buffer = kHasMomentum ? buffers[i] : 0.0f;
    const float moved = device::RmsPropElement<kDecays, kHasMomentum>(s, u.gradient[i], values[i], square, buffer);
    squares[i] = square;
    if (kHasMomentum) buffers[i] = buffer;
    values[i] = moved;
    if (kAverages) averages[i] = device::MovedAverage(s, averages[i], moved);
  }
}

// A formula with one slot.
template <bool kAverages, typename Formula>
void OneSlot(const UpdateScalars& scalars, const UpdateArrays& u, const Formula& formula) {
  const UpdateScalars s = scalars;
  float* values = u.value;
  float* slots = u.slots[0];
  float* averages = u.average;
#pragma GCC ivdep
  for (int64_t i = 0; i < u.count; ++i) {
    float slot = slots[i];
    const float moved = formula(s, u.gradient[i], values[i], slot);
    slots[i] = slot;
    values[i] = moved;
    if (kAverages) averages[i] = device::MovedAverage(s, averages[i], moved);
  }
}

template <bool kDecays, bool kAverages>
void Adagrad(const UpdateScalars& scalars, const UpdateArrays& arrays) {
  OneSlot<kAverages>(scalars, arrays, [](const UpdateScalars& s, float sum, float value, float& slot) {
    return device::AdagradElement<kDecays>(s, sum, value, slot);
  });
}

template <bool kAverages>
void Lion(const UpdateScalars& scalars, const UpdateArrays& arrays) {
  OneSlot<kAverages>(scalars, arrays, [](const UpdateScalars& s, float sum, float value, float& slot) {
    return device::LionElement(s, sum, value, slot);
  });
}

template <bool kDecays, bool kAverages>
void UpdateByKind(const UpdateFormula& formula, const UpdateScalars& scalars, const UpdateArrays& arrays) {
  switch (formula.kind) {
    case UpdateFormula::Kind::kSgd:
      return SgdBy<kDecays, kAverages>(formula, scalars, arrays);
    case UpdateFormula::Kind::kAdam:
      return Adam<kDecays, kAverages>(scalars, arrays);
    case UpdateFormula::Kind::kRmsProp:
      return formula.momentum ? RmsProp<kDecays, true, kAverages>(scalars, arrays)
                              : RmsProp<kDecays, false, kAverages>(scalars, arrays);
    case UpdateFormula::Kind::kAdagrad:
      return Adagrad<kDecays, kAverages>(scalars, arrays);
    case UpdateFormula::Kind::kLion:
      return Lion<kAverages>(scalars, arrays);
    case UpdateFormula::Kind::kLamb:
    case UpdateFormula::Kind::kAdafactor:
      return UpdateByNorms(formula, scalars, arrays);
  }
}

template <bool kAverages>
void UpdateBy(const UpdateFormula& formula, const UpdateScalars& scalars, const UpdateArrays& arrays) {
  formula.decays ? UpdateByKind<true, kAverages>(formula, scalars, arrays)
                 : UpdateByKind<false, kAverages>(formula, scalars, arrays);
}

}  // namespace

void UpdateElements(const UpdateFormula& formula, const UpdateScalars& scalars, const UpdateArrays& arrays) {
  if (arrays.average != nullptr) return UpdateBy<true>(formula, scalars, arrays);
  UpdateBy<false>(formula, scalars, arrays);
}

}  // namespace lockstep::worker::LS_CODE
