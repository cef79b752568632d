// Ops along the axes of a sequence.
//
//   CumSum(X) -> Y                       y[i] = x[0] + ... + x[i] along `axis`; exclusive: without x[i]; reverse: from
//                                        the end. F32, F64, I64, I32, I8 and U8; integers wrap around
//   Trilu(X [.., rows, columns]) -> Y    0 below diagonal `k` (upper) or above it. Elements of any type
//   ReverseSequence(X, lengths) -> Y     reverses the first lengths[b] steps of sequence b, keeps the others;
//                                        sequences count along batch_axis, steps along time_axis, which are 0 and 1.
//                                        A length is clamped to the axis. Elements of any type, lengths I64 or I32
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_SEQUENCE_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_SEQUENCE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct CumSumAttributes {
  int64_t axis = 0;  // may be negative
  bool exclusive = false;
  bool reverse = false;
  friend bool operator==(const CumSumAttributes&, const CumSumAttributes&) = default;
};

struct TriluAttributes {
  bool upper = true;
  int64_t k = 0;  // 0 is the main diagonal, a positive one lies above
  friend bool operator==(const TriluAttributes&, const TriluAttributes&) = default;
};

struct ReverseSequenceAttributes {
  int64_t batch_axis = 1;
  int64_t time_axis = 0;
  friend bool operator==(const ReverseSequenceAttributes&, const ReverseSequenceAttributes&) = default;
};

absl::Span<const OpSchema> SequenceFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_SEQUENCE_H_
