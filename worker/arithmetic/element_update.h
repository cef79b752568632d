// The update of a run of elements in host memory, and the squares that clipping sums up: the fastest loops that this
// machine has, which all give the same bits.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_ARITHMETIC_ELEMENT_UPDATE_H_
#define LOCKSTEP_WORKER_ARITHMETIC_ELEMENT_UPDATE_H_

#include "absl/types/span.h"
#include "worker/arithmetic/update_formulas.h"
#include "worker/arithmetic/update_loops.h"

namespace lockstep::worker {

// Updates in place, then moves the average to the new value, or copies that where `scalars` say so.
void UpdateElements(const device::UpdateFormula& formula, const device::UpdateScalars& scalars,
                    const UpdateArrays& arrays);

// The sum of squares in float64, in blocks of 4,096 elements, blocks in order.
double SumOfSquares(absl::Span<const float> values);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ARITHMETIC_ELEMENT_UPDATE_H_
