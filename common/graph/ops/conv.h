// Convolution (cross-correlation) with two spatial dimensions, layout NCHW, weights [out, in / group, kh, kw].
//
//   Conv(X, W, B?) -> Y
//   lockstep.ConvGradInput(dY, W) -> dX               shape of dX: the attribute input_shape
//   lockstep.ConvGradWeight(dY, X) -> dW, dB?         dB = sum of dY over batch and space, when a second output is
//   named
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_CONV_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_CONV_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct ConvAttributes {
  std::vector<int64_t> kernel_shape;         // {kh, kw}
  std::vector<int64_t> strides = {1, 1};     // {sh, sw}
  std::vector<int64_t> pads = {0, 0, 0, 0};  // {top, left, bottom, right}
  std::vector<int64_t> dilations = {1, 1};
  int64_t group = 1;
  // The whole shape of X; only ConvGradInput has it.
  std::vector<int64_t> input_shape;
  friend bool operator==(const ConvAttributes&, const ConvAttributes&) = default;
};

absl::Span<const OpSchema> ConvFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_CONV_H_
