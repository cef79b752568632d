// Convolution (cross-correlation) with one to three spatial dimensions: X [N, C, spatial...], weights
// [out, in / group, kernel...].
//
//   Conv(X, W, B?) -> Y
//   ConvTranspose(X, W, B?) -> Y                W [in, out / group, kernel...]: ConvGradInput with X in place of dY. Y
//                                               has the smallest shape whose convolution has X's shape, enlarged by
//                                               output_padding, which is below the strides
//   lockstep.ConvGradInput(dY, W) -> dX         shape of dX: the attribute input_shape
//   lockstep.ConvGradWeight(dY, X) -> dW, dB?   dB = sum of dY over batch and space, when a second output is named
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
  // One entry per spatial dimension; strides, pads and dilations that a file omits are 1, 0 and 1.
  std::vector<int64_t> kernel_shape;
  std::vector<int64_t> strides = {1, 1};
  // The padding before each dimension, then the padding behind each: {top, left, bottom, right}.
  std::vector<int64_t> pads = {0, 0, 0, 0};
  std::vector<int64_t> dilations = {1, 1};
  int64_t group = 1;
  // The whole shape of X; only ConvGradInput has it.
  std::vector<int64_t> input_shape;
  // Only ConvTranspose has it; empty: none.
  std::vector<int64_t> output_padding;
  friend bool operator==(const ConvAttributes&, const ConvAttributes&) = default;
};

absl::Span<const OpSchema> ConvFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_CONV_H_
