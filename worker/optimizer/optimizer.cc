#include "worker/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/status/check.h"
#include "worker/optimizer/schedule.h"

namespace lockstep::worker {
namespace {

constexpr size_t kNormBlock = 4096;

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

// The mean gradient of element i, clipped.
inline float MeanGradient(const UpdateScalars& s, float sum) {
  const float mean = sum / s.denominator;
  return s.clips ? mean * s.clip : mean;
}

void ApplySgd(const OptimizerRule& rule, const UpdateScalars& s, const ParameterUpdate& u) {
  const bool decays = rule.weight_decay != 0;
  const bool has_momentum = rule.momentum != 0;
  for (size_t i = 0; i < u.value.size(); ++i) {
    float gradient = MeanGradient(s, u.gradient[i]);
    if (decays) gradient = gradient + s.weight_decay * u.value[i];
    if (has_momentum) {
      // From a buffer of zeros the first step leaves the gradient itself in it, as torch.optim.SGD does.
      const float buffer = s.momentum * u.slots[0][i] + gradient;
      u.slots[0][i] = buffer;
      gradient = rule.nesterov ? gradient + s.momentum * buffer : buffer;
    }
    u.value[i] = u.value[i] - s.lr * gradient;
  }
}

void ApplyAdam(const OptimizerRule& rule, const UpdateScalars& s, const ParameterUpdate& u) {
  const bool decoupled = rule.kind == OptimizerKind::kAdamW;
  const bool decays = rule.weight_decay != 0;
  for (size_t i = 0; i < u.value.size(); ++i) {
    float gradient = MeanGradient(s, u.gradient[i]);
    float value = u.value[i];
    if (decays && decoupled) value = value * s.decay;
    if (decays && !decoupled) gradient = gradient + s.weight_decay * value;
    const float mean = u.slots[0][i] + s.one_minus_beta1 * (gradient - u.slots[0][i]);
    const float square = s.beta2 * u.slots[1][i] + s.one_minus_beta2 * (gradient * gradient);
    u.slots[0][i] = mean;
    u.slots[1][i] = square;
    // The square root of float is correctly rounded by IEEE 754, in every instruction set.
    const float denominator = std::sqrt(square) / s.correction2 + s.epsilon;
    u.value[i] = value - s.step_size * (mean / denominator);
  }
}

}  // namespace

double GlobalNorm(absl::Span<const absl::Span<const float>> gradients, double denominator) {
  double sum = 0;
  for (const absl::Span<const float>& gradient : gradients) sum += SumOfSquares(gradient);
  return std::sqrt(sum) / denominator;
}

UpdateScalars MakeUpdateScalars(const UpdateRule& rule, int64_t step, double denominator, double norm) {
  const OptimizerRule& o = rule.optimizer;
  const double lr = LearningRate(rule.schedule, step);
  UpdateScalars s;
  s.denominator = static_cast<float>(denominator);
  if (rule.clip_global_norm.has_value()) {
    s.clips = true;
    s.clip = static_cast<float>(std::min(1.0, *rule.clip_global_norm / (norm + 1e-6)));
  }
  s.weight_decay = static_cast<float>(o.weight_decay);
  s.lr = static_cast<float>(lr);
  s.momentum = static_cast<float>(o.momentum);
  s.decay = static_cast<float>(1.0 - lr * o.weight_decay);
  if (o.kind == OptimizerKind::kSgd) return s;
  s.one_minus_beta1 = static_cast<float>(1.0 - o.beta1);
  s.beta2 = static_cast<float>(o.beta2);
  s.one_minus_beta2 = static_cast<float>(1.0 - o.beta2);
  s.step_size = static_cast<float>(lr / (1.0 - IntegerPower(o.beta1, step + 1)));
  s.correction2 = static_cast<float>(std::sqrt(1.0 - IntegerPower(o.beta2, step + 1)));
  s.epsilon = static_cast<float>(o.epsilon);
  return s;
}

void ApplyUpdate(const OptimizerRule& rule, const UpdateScalars& scalars, const ParameterUpdate& update) {
  const size_t size = update.value.size();
  const size_t slots = rule.kind != OptimizerKind::kSgd ? 2 : rule.momentum != 0 ? 1 : 0;
  LS_CHECK(update.gradient.size() == size, "one gradient per element");
  for (size_t i = 0; i < slots; ++i) LS_CHECK(update.slots[i].size() == size, "one slot value per element");
  if (rule.kind == OptimizerKind::kSgd) {
    ApplySgd(rule, scalars, update);
  } else {
    ApplyAdam(rule, scalars, update);
  }
}

NanAction DecideOnNan(OnNan policy, bool non_finite) {
  if (!non_finite) return NanAction::kApply;
  return policy == OnNan::kSkipStep ? NanAction::kSkip : NanAction::kStop;
}

}  // namespace lockstep::worker
