// The loops of the updates of norm_formulas.h over a whole parameter, compiled once per instruction set as
// update_loops.h.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_ARITHMETIC_NORM_LOOPS_H_
#define LOCKSTEP_WORKER_ARITHMETIC_NORM_LOOPS_H_

#include "worker/arithmetic/update_formulas.h"
#include "worker/arithmetic/update_loops.h"

namespace lockstep::worker {

// Updates in place, then moves the average. REQUIRES: as UpdateElements; the formula goes by norms, and the arrays are
// those of a whole parameter.
namespace portable {
void UpdateByNorms(const device::UpdateFormula& formula, const device::UpdateScalars& scalars,
                   const UpdateArrays& arrays);
}
namespace avx2 {
void UpdateByNorms(const device::UpdateFormula& formula, const device::UpdateScalars& scalars,
                   const UpdateArrays& arrays);
}
namespace avx512 {
void UpdateByNorms(const device::UpdateFormula& formula, const device::UpdateScalars& scalars,
                   const UpdateArrays& arrays);
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ARITHMETIC_NORM_LOOPS_H_
