// Whether a model can be trained, before anything is known of its data and its loss.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_COMMON_GRAPH_BUILD_CHECK_TRAINABLE_H_
#define LOCKSTEP_COMMON_GRAPH_BUILD_CHECK_TRAINABLE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// OK when gradients of the floating-point outputs reach the parameters of `forward`, for passes of `batch` samples; the
// training graph is made to see it, as for a job. Codes and messages as of MakeTrainingGraph.
absl::Status CheckTrainable(const Graph& forward, int64_t batch);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_BUILD_CHECK_TRAINABLE_H_
