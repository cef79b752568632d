#include "worker/arithmetic/optimizer.h"

#include <algorithm>
#include <cmath>

#include "common/graph/schedule.h"
#include "common/math/math.h"
#include "common/math/power.h"

namespace lockstep::worker {

UpdateRule RuleOfGroup(const UpdateRule& rule, const ParameterGroup& group) {
  UpdateRule of_group = rule;
  of_group.schedule.lr = group.lr;
  of_group.optimizer.weight_decay = group.weight_decay;
  of_group.optimizer.groups.clear();
  return of_group;
}

UpdateScalars MakeUpdateScalars(const UpdateRule& rule, const UpdatePlace& place, double denominator, double norm) {
  const OptimizerRule& o = rule.optimizer;
  const int64_t step = place.step;
  const double lr = LearningRate(rule.schedule, step, place.rate_cuts);
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
  if (rule.ema.has_value()) {
    s.copies_average = step == 0 || step < rule.ema->start_steps;
    s.average_rate = static_cast<float>(1.0 - rule.ema->decay);
  }
  if (o.kind == OptimizerKind::kSgd) return s;
  s.beta1 = static_cast<float>(o.beta1);
  s.one_minus_beta1 = static_cast<float>(1.0 - o.beta1);
  s.beta2 = static_cast<float>(o.beta2);
  s.one_minus_beta2 = static_cast<float>(1.0 - o.beta2);
  s.step_size = static_cast<float>(lr / (1.0 - IntegerPower(o.beta1, step + 1)));
  s.correction2 = static_cast<float>(std::sqrt(1.0 - IntegerPower(o.beta2, step + 1)));
  s.epsilon = static_cast<float>(o.epsilon);
  if (o.kind == OptimizerKind::kLamb) {
    s.step_size = static_cast<float>(1.0 / (1.0 - IntegerPower(o.beta1, step + 1)));
    s.decay = 1;
  }
  if (o.kind == OptimizerKind::kAdafactor) {
    const auto t = static_cast<double>(step + 1);
    s.lr = static_cast<float>(std::min(lr, 1.0 / SquareRoot(t)));
    s.one_minus_beta2 = static_cast<float>(Pow(t, o.beta2_decay));
    s.least_square = static_cast<float>(o.epsilon * o.epsilon);
    s.min_scale = static_cast<float>(o.min_scale);
    s.max_rms = static_cast<float>(o.max_rms);
  }
  return s;
}

device::UpdateFormula FormulaOf(const OptimizerRule& rule) {
  using Kind = device::UpdateFormula::Kind;
  const bool into_gradient = rule.kind == OptimizerKind::kSgd || rule.kind == OptimizerKind::kAdam ||
                             rule.kind == OptimizerKind::kRmsProp || rule.kind == OptimizerKind::kAdagrad;
  const bool keeps_momentum = rule.kind == OptimizerKind::kSgd || rule.kind == OptimizerKind::kRmsProp;
  device::UpdateFormula formula{.decays = into_gradient && rule.weight_decay != 0,
                                .momentum = keeps_momentum && rule.momentum != 0,
                                .nesterov = rule.nesterov};
  switch (rule.kind) {
    case OptimizerKind::kSgd:
      formula.kind = Kind::kSgd;
      break;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      formula.kind = Kind::kAdam;
      break;
    case OptimizerKind::kRmsProp:
      formula.kind = Kind::kRmsProp;
      break;
    case OptimizerKind::kAdagrad:
      formula.kind = Kind::kAdagrad;
      break;
    case OptimizerKind::kLion:
      formula.kind = Kind::kLion;
      break;
    case OptimizerKind::kLamb:
      formula.kind = Kind::kLamb;
      break;
    case OptimizerKind::kAdafactor:
      formula.kind = Kind::kAdafactor;
      break;
  }
  return formula;
}

NanAction DecideOnNan(OnNan policy, bool non_finite) {
  if (!non_finite) return NanAction::kApply;
  return policy == OnNan::kSkipStep ? NanAction::kSkip : NanAction::kStop;
}

}  // namespace lockstep::worker
