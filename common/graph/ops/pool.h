// Pooling with one to three spatial dimensions of X [N, C, spatial...]. Padding never wins a maximum; a NaN in a window
// does; of equal maxima the first in row-major order of the window wins (PyTorch's convention, which decides where
// gradients go).
//
//   MaxPool(X) -> Y
//   AveragePool(X) -> Y                           the mean over the window's elements; count_include_pad counts padding
//                                                 too, but never the part of a window that ceil_mode lets reach beyond
//                                                 the padding
//   GlobalAveragePool(X), GlobalMaxPool(X) -> Y [N, C, 1...]        over all spatial dimensions
//   lockstep.MaxPoolWithArgmax(X) -> Y, Argmax    Argmax I32, shape of Y: the row-major index of the maximum in its
//                                                 plane of the input
//   lockstep.MaxPoolGrad(dY, Argmax) -> dX        shape of dX: the attribute input_shape
//   lockstep.AveragePoolGrad(dY) -> dX            likewise
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_POOL_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_POOL_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct PoolAttributes {
  // One entry per spatial dimension; strides, pads and dilations that a file omits are 1, 0 and 1.
  std::vector<int64_t> kernel_shape;
  std::vector<int64_t> strides = {1, 1};
  // The padding before each dimension, then the padding behind each: {top, left, bottom, right}.
  std::vector<int64_t> pads = {0, 0, 0, 0};
  std::vector<int64_t> dilations = {1, 1};
  bool ceil_mode = false;
  // The whole shape of X; only the gradients have it.
  std::vector<int64_t> input_shape;
  bool count_include_pad = false;  // of averages
  friend bool operator==(const PoolAttributes&, const PoolAttributes&) = default;
};

absl::Span<const OpSchema> PoolFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_POOL_H_
