// The first part of a tensor along one of its dimensions.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_COMMON_GRAPH_PASSES_FIRST_ALONG_H_
#define LOCKSTEP_COMMON_GRAPH_PASSES_FIRST_ALONG_H_

#include <cstddef>
#include <cstdint>

#include "common/tensor/tensor.h"

namespace lockstep {

// The first `count` entries along `axis`. REQUIRES: the tensor has that axis, and as many.
Tensor FirstAlong(const Tensor& tensor, size_t axis, int64_t count);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_PASSES_FIRST_ALONG_H_
