// Pads the number of classes n of a classifier (a vocabulary) to a multiple of 64, so that the rows of its scores are
// aligned to 16 bytes. Otherwise, for example with BF16 and an odd n, GPU libraries run these products and those of the
// gradient at a quarter of their rate. The added classes never occur:
//
//   weights [n, k]     padded with rows of zeros ([k, n]: with columns)
//   bias [n]           padded with -infinity; if there is no bias, one is added with 0 for the n classes
//   scores             -infinity in the added columns: probability and gradient are exactly 0 there
//   labels             valid labels are below n, so an added class is never a label
//   gradients          those of the weights and the bias are cut back to n
//
// Loss and gradients keep their values, since only zeros are added to sums; only the order of sums within the products
// may differ, as between any two sizes. Scores that are read by anything but a cross entropy are left alone.
//
// Threading: immutable (a free function).
#ifndef LOCKSTEP_WORKER_PLAN_PAD_CLASSES_H_
#define LOCKSTEP_WORKER_PLAN_PAD_CLASSES_H_

#include <cstdint>

#include "common/graph/ops/ir.h"

namespace lockstep::worker {

// Fewer classes are not worth the padding.
inline constexpr int64_t kLeastPaddedClasses = 1024;
inline constexpr int64_t kPaddedClassesMultiple = 64;

// Returns the number of padded score products. REQUIRES: shapes are inferred; `graph` is RewriteForPlan's result.
int PadClasses(Graph* graph);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_PAD_CLASSES_H_
