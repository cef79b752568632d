// Dropout with counter-based randomness: what is dropped is a function of (seed, step, logical shard, pass, stream,
// element), never of which worker computes it.
//
//   Dropout(X, dropped?) -> Y, mask?                the identity, with a mask of trues. With training_mode the training
//                                                   graph replaces it: by `dropped`, which other nodes compute of X,
//                                                   where that is given, else by
//   lockstep.DropoutTraining(X, random) -> Y, mask  mask BOOL: true where kept; Y = kept ? X * 1 / (1 - ratio) : 0
//   lockstep.DropoutGrad(dY, mask) -> dX            kept ? dY * 1 / (1 - ratio) : 0
//
// `random` is the graph input kRandomInput: I64 [4] = {seed, step, logical shard, pass}. Element e is kept iff
// RandomUint32(seed, step, shard, pass, stream, e) >= DropThreshold(ratio), see common/random/random.h.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_DROPOUT_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_DROPOUT_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct DropoutAttributes {
  double ratio = 0.5;  // in [0, 1)
  bool training_mode = false;
  // Which sequence of numbers this node draws: a hash of the node's name.
  uint64_t stream = 0;
  friend bool operator==(const DropoutAttributes&, const DropoutAttributes&) = default;
};

absl::Span<const OpSchema> DropoutFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_DROPOUT_H_
