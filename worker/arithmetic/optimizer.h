// Stage 6, the arithmetic: the update that takes the state from step s to s + 1, given the reduced gradients, by the
// formulas of torch.optim (SGD, Adam, AdamW, RMSprop, Adagrad, Adafactor), of Lion or of LAMB. All is in float32
// without contraction, with scalars computed once per step in float64 without libm: every rank computes the same bits.
// Most formulas are element-wise, so that any part of a parameter can be updated alone; LAMB and Adafactor need all of
// it.
//
// A step is: reduced sums -> sum of squares (when clipping) -> MakeUpdateScalars -> for each parameter UpdateElements
// (element_update.h) or the device's StepMath. DecideOnNan decides from the reduced non-finite flag whether a step is
// applied.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_ARITHMETIC_OPTIMIZER_H_
#define LOCKSTEP_WORKER_ARITHMETIC_OPTIMIZER_H_

#include <cstdint>

#include "common/graph/metagraph.h"
#include "worker/arithmetic/update_formulas.h"

namespace lockstep::worker {

using device::UpdateScalars;

device::UpdateFormula FormulaOf(const OptimizerRule& rule);

// The point of training at which an update is made.
struct UpdatePlace {
  int64_t step = 0;       // the update takes the state from here to `step` + 1
  int64_t rate_cuts = 0;  // EvaluationLedger::rate_cuts at that step
};

// `rule` for the parameters of `group`: with its learning rate and weight decay, and without groups.
UpdateRule RuleOfGroup(const UpdateRule& rule, const ParameterGroup& group);

// The scalars of the update at `place`; Adam's t is `step` + 1, and a skipped step counts. `denominator` is the folded
// kLossDenominator of all passes. `norm` is the Euclidean norm of the mean gradient: the root of the sum of all
// parameters' SumOfSquares, in their order, divided by `denominator`. It matters only when the rule clips; then
// gradients are multiplied by min(1, max_norm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ does.
UpdateScalars MakeUpdateScalars(const UpdateRule& rule, const UpdatePlace& place, double denominator, double norm);

enum class NanAction : uint8_t {
  kApply,  // all gradients are finite
  kSkip,   // the step counts, but only the step number changes
  kStop,   // no update: the job ends at the previous step with exit code 65
};

// Decides what to do with a step, given the reduced flag that a gradient is non-finite: the same on every replica.
NanAction DecideOnNan(OnNan policy, bool non_finite);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ARITHMETIC_OPTIMIZER_H_
