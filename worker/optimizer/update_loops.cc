// LS_CODE is the instruction set that this is compiled for: see BUILD.bazel.
#include "worker/optimizer/update_loops.h"

namespace lockstep::worker::LS_CODE {
namespace {

// The mean gradient, clipped: where nothing clips the factor is 1, which changes no bit.
[[gnu::always_inline]] inline float MeanGradient(const UpdateScalars& s, float sum) {
  return sum / s.denominator * s.clip;
}

// Moves an average towards the parameter's new value.
[[gnu::always_inline]] inline float Moved(const UpdateScalars& s, float average, float value) {
  return average + s.average_rate * (value - average);
}

template <bool kDecays, bool kHasMomentum, bool kNesterov, bool kAverages>
void Sgd(const UpdateScalars& scalars, const UpdateArrays& u) {
  const UpdateScalars s = scalars;
  float* value = u.value;
  float* buffers = u.slots[0];
  float* averages = u.average;
#pragma GCC ivdep
  for (int64_t i = 0; i < u.count; ++i) {
    float gradient = MeanGradient(s, u.gradient[i]);
    if (kDecays) gradient = gradient + s.weight_decay * value[i];
    if (kHasMomentum) {
      // From a buffer of zeros the first step leaves the gradient itself in it, as torch.optim.SGD does.
      const float buffer = s.momentum * buffers[i] + gradient;
      buffers[i] = buffer;
      gradient = kNesterov ? gradient + s.momentum * buffer : buffer;
    }
    const float moved = value[i] - s.lr * gradient;
    value[i] = moved;
    if (kAverages) averages[i] = Moved(s, averages[i], moved);
  }
}

template <bool kDecays, bool kAverages>
void SgdBy(const OptimizerRule& rule, const UpdateScalars& s, const UpdateArrays& u) {
  if (rule.momentum == 0) return Sgd<kDecays, false, false, kAverages>(s, u);
  if (rule.nesterov) return Sgd<kDecays, true, true, kAverages>(s, u);
  Sgd<kDecays, true, false, kAverages>(s, u);
}

// kDecays: into the gradient. What AdamW takes off the parameter is a factor, 1 where nothing decays.
template <bool kDecays, bool kAverages>
void Adam(const UpdateScalars& scalars, const UpdateArrays& u) {
  const UpdateScalars s = scalars;
  float* values = u.value;
  float* means = u.slots[0];
  float* squares = u.slots[1];
  float* averages = u.average;
  const float decay = kDecays ? 1.0f : s.decay;
#pragma GCC ivdep
  for (int64_t i = 0; i < u.count; ++i) {
    float gradient = MeanGradient(s, u.gradient[i]);
    const float value = values[i] * decay;
    if (kDecays) gradient = gradient + s.weight_decay * value;
    const float mean = means[i] + s.one_minus_beta1 * (gradient - means[i]);
    const float square = s.beta2 * squares[i] + s.one_minus_beta2 * (gradient * gradient);
    means[i] = mean;
    squares[i] = square;
    // The square root of float is correctly rounded by IEEE 754, in every instruction set.
    const float denominator = __builtin_sqrtf(square) / s.correction2 + s.epsilon;
    const float moved = value - s.step_size * (mean / denominator);
    values[i] = moved;
    if (kAverages) averages[i] = Moved(s, averages[i], moved);
  }
}

template <bool kAverages>
void UpdateBy(const OptimizerRule& rule, const UpdateScalars& scalars, const UpdateArrays& arrays) {
  const bool decays = rule.weight_decay != 0;
  switch (rule.kind) {
    case OptimizerKind::kSgd:
      return decays ? SgdBy<true, kAverages>(rule, scalars, arrays) : SgdBy<false, kAverages>(rule, scalars, arrays);
    case OptimizerKind::kAdam:
      return decays ? Adam<true, kAverages>(scalars, arrays) : Adam<false, kAverages>(scalars, arrays);
    case OptimizerKind::kAdamW:
      return Adam<false, kAverages>(scalars, arrays);
  }
}

}  // namespace

void UpdateElements(const OptimizerRule& rule, const UpdateScalars& scalars, const UpdateArrays& arrays) {
  if (arrays.average != nullptr) return UpdateBy<true>(rule, scalars, arrays);
  UpdateBy<false>(rule, scalars, arrays);
}

}  // namespace lockstep::worker::LS_CODE
