// Updates a run of elements in host memory and sums squares for gradient clipping, with the widest instruction set that
// the CPU has. All instruction sets give the same bits.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_ARITHMETIC_ELEMENT_UPDATE_H_
#define LOCKSTEP_WORKER_ARITHMETIC_ELEMENT_UPDATE_H_

#include "absl/types/span.h"
#include "worker/arithmetic/update_formulas.h"
#include "worker/arithmetic/update_loops.h"

namespace lockstep::worker {

// Updates values and slots in place. Then moves the average towards the new value, or copies it with
// `scalars.copies_average`.
// REQUIRES: the arrays are those of a whole parameter if the formula goes by norms (norm_formulas.h), whose scratch is
// not used.
void UpdateElements(const device::UpdateFormula& formula, const device::UpdateScalars& scalars,
                    const UpdateArrays& arrays);

// The sum of squares in float64: blocks of 4,096 elements are summed each by itself and then added in order.
double SumOfSquares(absl::Span<const float> values);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ARITHMETIC_ELEMENT_UPDATE_H_
