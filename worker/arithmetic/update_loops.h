// The update loops over the elements of a parameter, compiled once per instruction set, each into a namespace of its
// own. All evaluate the formulas of update_formulas.h element by element and so give the same bits.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_ARITHMETIC_UPDATE_LOOPS_H_
#define LOCKSTEP_WORKER_ARITHMETIC_UPDATE_LOOPS_H_

#include <cstdint>

#include "worker/arithmetic/update_formulas.h"

namespace lockstep::worker {

// The arrays that one parameter's update reads and writes: `count` elements each, except adafactor's slots of a matrix,
// which have one per row and one per column. Unused slots are null, and so is the average when the job keeps none.
struct UpdateArrays {
  int64_t count = 0;
  float* value = nullptr;
  const float* gradient = nullptr;
  float* slots[2] = {};
  float* average = nullptr;
  device::TrailingMatrix shape = {};
  double* scratch = nullptr;  // of ScratchDoubles
};

// The length of Scratch for a parameter's update, in doubles.
constexpr int64_t ScratchDoubles(const device::UpdateFormula& formula, int64_t count,
                                 const device::TrailingMatrix& shape) {
  if (formula.kind != device::UpdateFormula::Kind::kAdafactor || shape.columns == 0) return 0;
  // Sums of columns, those of a block of rows, and a float of every matrix.
  return 2 * shape.columns + (count / (shape.rows * shape.columns) + 1) / 2;
}

// Updates values and slots in place, then the average. REQUIRES: the CPU has the instruction set; arrays do not
// overlap, and are those of a whole parameter if the formula goes by norms.
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
