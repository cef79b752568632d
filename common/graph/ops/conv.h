// Convolution (cross-correlation) with one to three spatial dimensions: X [N, C, spatial...], weights
// [out, in / group, kernel...].
//
//   Conv(X, W, B?) -> Y
//   ConvTranspose(X, W, B?) -> Y                      W [in, out / group, kernel...]: what ConvGradInput makes of X, in
//   the smallest shape whose convolution has X's shape, and output_padding (below the strides) larger
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
  // One entry per spatial dimension; a file that leaves out strides, pads or dilations means those of the defaults'
  // values.
  std::vector<int64_t> kernel_shape;
  std::vector<int64_t> strides = {1, 1};
  std::vector<int64_t> pads = {0, 0, 0,
                               0};  // those before every dimension, then those behind: {top, left, bottom, right}
  std::vector<int64_t> dilations = {1, 1};
  int64_t group = 1;
  // The whole shape of X; only ConvGradInput has it.
  std::vector<int64_t> input_shape;
  // Of ConvTranspose; empty: none.
  std::vector<int64_t> output_padding;
  friend bool operator==(const ConvAttributes&, const ConvAttributes&) = default;
};

absl::Span<const OpSchema> ConvFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_CONV_H_
