// The number of classes that a model distinguishes.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_COMMON_GRAPH_LABEL_CLASSES_H_
#define LOCKSTEP_COMMON_GRAPH_LABEL_CLASSES_H_

#include <cstdint>
#include <optional>

#include "common/graph/metagraph.h"

namespace lockstep {

// Labels lie in [0, n) for the number n returned; nullopt unless the loss is softmax_cross_entropy. REQUIRES: a valid
// metagraph.
std::optional<int64_t> LabelClasses(const MetaGraph& metagraph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_LABEL_CLASSES_H_
