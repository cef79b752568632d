// Ops that join tensors along an axis, and take them apart. Elements of any type.
//
//   Concat(X...) -> Y         equal dimensions beside `axis`
//   Split(X) -> Y...          `split` states the lengths along `axis`. Without it the parts are equal; where
//                             num_outputs is given, the last one may be shorter
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_JOIN_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_JOIN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct ConcatAttributes {
  int64_t axis = 0;  // may be negative
  friend bool operator==(const ConcatAttributes&, const ConcatAttributes&) = default;
};

struct SplitAttributes {
  int64_t axis = 0;  // may be negative
  std::vector<int64_t> split;
  int64_t num_outputs = 0;  // 0: not given
  friend bool operator==(const SplitAttributes&, const SplitAttributes&) = default;
};

absl::Span<const OpSchema> JoinFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_JOIN_H_
