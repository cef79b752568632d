// Products that give scores of many classes, and those of the scores' gradient, with rows that begin on 16 bytes. Where
// the number of classes n is odd, rows of BF16 do not, and libraries for GPUs come down to a quarter of their rate. It
// is filled up to a multiple of 64 classes that are never met:
//
//   weights [n, k]     filled up with rows of zeros (or [k, n] with columns)
//   bias [n]           filled up with -infinity; without a bias, 0 for the n classes
//   scores             -infinity in the columns behind n: probability and gradient are 0 there, exactly
//   labels             a label that is none of the n classes is none of the others either
//   gradients of the weights and the bias     are cut off behind n
//
// The loss and the gradients are what they were: what is added to sums is 0. Only the products' own order of sums may
// differ, as it does between any two sizes. Scores that anything but a cross entropy reads stay as they are.
//
// Threading: immutable (a free function).
#ifndef LOCKSTEP_WORKER_PLAN_PAD_CLASSES_H_
#define LOCKSTEP_WORKER_PLAN_PAD_CLASSES_H_

#include <cstdint>

#include "common/graph/ops/ir.h"

namespace lockstep::worker {

// Fewer are not worth the work around them.
inline constexpr int64_t kLeastPaddedClasses = 1024;
inline constexpr int64_t kPaddedClassesMultiple = 64;

// Returns how many products of scores it changed. REQUIRES: shapes are inferred; `graph` is RewriteForPlan's.
int PadClasses(Graph* graph);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_PAD_CLASSES_H_
