// The loops of the update over the elements of a parameter, compiled once per instruction set into a namespace of its
// own: the same formulas, element by element, hence the same bits in each.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_ARITHMETIC_UPDATE_LOOPS_H_
#define LOCKSTEP_WORKER_ARITHMETIC_UPDATE_LOOPS_H_

#include <cstdint>

#include "worker/arithmetic/update_formulas.h"

namespace lockstep::worker {

// What one parameter's update reads and writes: `count` elements each; slots that the rule has not are null,
// as is the average where none moves.
struct UpdateArrays {
  int64_t count = 0;
  float* value = nullptr;
  const float* gradient = nullptr;
  float* slots[2] = {};
  float* average = nullptr;
};

// Updates in place, then moves the average. REQUIRES: the machine has the instruction set; arrays do not overlap.
namespace portable {
void UpdateElements(const device::UpdateFormula& formula, const device::UpdateScalars& scalars,
                    const UpdateArrays& arrays);
}
namespace avx2 {
void UpdateElements(const device::UpdateFormula& formula, const device::UpdateScalars& scalars,
                    const UpdateArrays& arrays);
}
namespace avx512 {
void UpdateElements(const device::UpdateFormula& formula, const device::UpdateScalars& scalars,
                    const UpdateArrays& arrays);
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ARITHMETIC_UPDATE_LOOPS_H_
