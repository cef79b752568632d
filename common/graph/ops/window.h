// Sliding windows over one to three spatial dimensions, as ONNX's Conv and MaxPool count them.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_WINDOW_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_WINDOW_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// Upper limit of a dimension that windows move over: far above any real one, and low enough that nothing overflows.
inline constexpr int64_t kMostExtent = int64_t{1} << 40;

// InvalidArgument unless there are one to three positive kernel sizes, as many strides and dilations, and twice as many
// non-negative pads.
absl::Status CheckWindow(const std::vector<int64_t>& kernel_shape, const std::vector<int64_t>& strides,
                         const std::vector<int64_t>& pads, const std::vector<int64_t>& dilations);

// The number of windows along one dimension of `size` elements. With `ceil_mode` a last window that hangs over the end
// counts when it begins inside the input or its leading padding. InvalidArgument when not even one fits.
absl::StatusOr<int64_t> WindowCount(int64_t size, int64_t kernel, int64_t stride, int64_t pad_begin, int64_t pad_end,
                                    int64_t dilation, bool ceil_mode);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_WINDOW_H_
