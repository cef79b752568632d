// Stage 6, the arithmetic: the update that takes the state from step s to s + 1 by torch.optim's formulas (SGD, Adam,
// AdamW, RMSprop, Adagrad) or Lion's, given the reduced gradients. Element-wise only, in float32 without contraction,
// with scalars computed once per step in float64 without libm: the same bits on every rank, whatever part of a
// parameter it updates.
//
// A step is: reduced sums -> their squares, summed (when clipping) -> MakeUpdateScalars -> UpdateElements of
// element_update.h, or the device's StepMath, per parameter. DecideOnNan decides whether a step is applied, from the
// reduced non-finite flag.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_ARITHMETIC_OPTIMIZER_H_
#define LOCKSTEP_WORKER_ARITHMETIC_OPTIMIZER_H_

#include <cstdint>

#include "common/graph/metagraph.h"
#include "worker/arithmetic/update_formulas.h"

namespace lockstep::worker {

using device::UpdateScalars;

// The formula of a rule.
device::UpdateFormula FormulaOf(const OptimizerRule& rule);

// Where in training an update stands.
struct UpdatePlace {
  int64_t step = 0;       // the update takes the state from here to `step` + 1
  int64_t rate_cuts = 0;  // EvaluationLedger::rate_cuts there
};

// `rule` for the parameters of `group`: with its learning rate and weight decay, and without groups.
UpdateRule RuleOfGroup(const UpdateRule& rule, const ParameterGroup& group);

// The scalars of the update at `place` (so Adam's t is `step` + 1; a skipped step counts). `denominator`
// is the folded kLossDenominator of all passes; `norm` is the Euclidean norm of the mean gradient (the root of all
// parameters' SumOfSquares, in their order, divided by `denominator`), used only when the rule clips, as
// torch.nn.utils.clip_grad_norm_ does: times min(1, max_norm / (norm + 1e-6)).
UpdateScalars MakeUpdateScalars(const UpdateRule& rule, const UpdatePlace& place, double denominator, double norm);

enum class NanAction : uint8_t {
  kApply,  // all gradients are finite
  kSkip,   // the step counts; nothing changes but its number
  kStop,   // no update: the job ends at the step before, exit code 65
};

// What to do in a step with a non-finite gradient, by the reduced flag: the same on every replica.
NanAction DecideOnNan(OnNan policy, bool non_finite);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ARITHMETIC_OPTIMIZER_H_
