// Checks whether a model can be trained before its data and its loss are known.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_COMMON_GRAPH_BUILD_CHECK_TRAINABLE_H_
#define LOCKSTEP_COMMON_GRAPH_BUILD_CHECK_TRAINABLE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// InvalidArgument that names a variable of floating point other than F32: state is F32, and so is what trains it.
absl::Status CheckVariableTypes(const Graph& forward);

// OK when gradients of the F32 outputs reach the parameters of `forward`, for passes of `batch` samples. Derives the
// training graph as for a job; codes and messages are those of CheckVariableTypes and
// MakeTrainingGraph.
absl::Status CheckTrainable(const Graph& forward, int64_t batch);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_BUILD_CHECK_TRAINABLE_H_
