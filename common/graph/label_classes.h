// How many classes a model tells apart.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_COMMON_GRAPH_LABEL_CLASSES_H_
#define LOCKSTEP_COMMON_GRAPH_LABEL_CLASSES_H_

#include <cstdint>
#include <optional>

#include "common/graph/metagraph.h"

namespace lockstep {

// The classes that labels may name, from 0; nullopt when the loss compares no classes. REQUIRES: a valid metagraph.
std::optional<int64_t> LabelClasses(const MetaGraph& metagraph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_LABEL_CLASSES_H_
