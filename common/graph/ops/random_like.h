// Random numbers in the shape of X, or in a given shape. They are counter-based: a function of (seed, step, logical
// shard, pass, stream, element), never of which worker computes them.
//
//   lockstep.UniformLike(X?, random?) -> Y  Y = a + (b - a) * u with u in (0, 1), rounded
//   lockstep.NormalLike(X?, random?) -> Y   Y = a + b * n with n normal (mean 0, deviation 1), |n| < 6.7
//
// X gives only the shape: its elements are never read, and no gradient flows to it. With the attribute `shape` the op
// takes at most the batch from X. `random` is the graph input kRandomInput, which training and evaluation graphs add; a
// node without it belongs to a graph that is never executed. The formulas stand in worker/kernels/random/draws.h.
//
// Source: ONNX's RandomUniformLike and RandomNormalLike, which leave the generator to the runtime.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_RANDOM_LIKE_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_RANDOM_LIKE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/dtype.h"

namespace lockstep {

struct OpSchema;

struct RandomLikeAttributes {
  // UniformLike: the lower and the upper bound. NormalLike: mean and standard deviation.
  double a = 0;
  double b = 1;
  DType dtype = DType::kF32;  // of Y: F32, or F64 with the same numbers
  // Shape of Y, with kBatchDim for X's first dimension; none: X's shape.
  std::optional<std::vector<int64_t>> shape;
  // Which sequence of numbers this node draws: a hash of the node's name.
  uint64_t stream = 0;
  friend bool operator==(const RandomLikeAttributes&, const RandomLikeAttributes&) = default;
};

absl::Span<const OpSchema> RandomLikeFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_RANDOM_LIKE_H_
