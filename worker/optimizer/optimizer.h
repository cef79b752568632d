// Stage 6, the arithmetic: the update that takes the state from step s to s + 1 by torch.optim's formulas (SGD, Adam,
// AdamW), given the reduced gradients. Element-wise only, in float32 without contraction, with scalars computed once
// per step in float64 without libm: the same bits on every rank, whatever part of a parameter it updates.
//
// A step is: reduced sums -> GlobalNorm (when clipping) -> MakeUpdateScalars -> ApplyUpdate per parameter. Nothing here
// decides whether a step is applied; DecideOnNan does, from the reduced non-finite flag.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_OPTIMIZER_OPTIMIZER_H_
#define LOCKSTEP_WORKER_OPTIMIZER_OPTIMIZER_H_

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "worker/device/update_formulas.h"

namespace lockstep::worker {

using device::UpdateScalars;

// The formula of a rule.
device::UpdateFormula FormulaOf(const OptimizerRule& rule);

// Euclidean norm of the mean gradient: of all `gradients` (reduced sums, in the order of the parameters) divided by
// `denominator`. Squares are summed in float64, in blocks of 4,096 elements of a parameter, blocks in order. NaN or
// infinity when an element is not finite.
double GlobalNorm(absl::Span<const absl::Span<const float>> gradients, double denominator);

// The scalars of the update from `step` to `step` + 1 (so Adam's t is `step` + 1; a skipped step counts). `denominator`
// is the folded kLossDenominator of all passes; `norm` is GlobalNorm, used only when the rule clips, as
// torch.nn.utils.clip_grad_norm_ does: times min(1, max_norm / (norm + 1e-6)).
UpdateScalars MakeUpdateScalars(const UpdateRule& rule, int64_t step, double denominator, double norm);

// One parameter, or any part of one, with the matching parts of its gradient and slots.
struct ParameterUpdate {
  absl::Span<float> value;
  absl::Span<const float> gradient;          // reduced sum, not yet divided
  std::array<absl::Span<float>, 2> slots{};  // in the order of SlotNames(rule); unused ones empty
  absl::Span<float> average{};               // empty: none is kept
};

// Applies the update in place, then moves the average to the new value. REQUIRES: the gradient, each slot of the rule
// and the average, where there is one, have as many elements as the value.
void ApplyUpdate(const OptimizerRule& rule, const UpdateScalars& scalars, const ParameterUpdate& update);

enum class NanAction : uint8_t {
  kApply,  // all gradients are finite
  kSkip,   // the step counts; nothing changes but its number
  kStop,   // no update: the job ends at the step before, exit code 65
};

// What becomes of a step whose gradient has a mean or not, by the reduced flags: the same on every replica.
NanAction DecideOnNan(OnNan policy, bool non_finite);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_OPTIMIZER_OPTIMIZER_H_
