// Interpolation along one dimension as ONNX defines Resize, for what the op Resize does not do itself: cubic, smoothing
// (antialias), and the rarer rules for coordinates.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_RESIZE_WEIGHTS_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_RESIZE_WEIGHTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep {

struct ResizeRule {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string rounding = "round_prefer_floor";  // of nearest
  bool antialias = false;
  bool exclude_outside = false;
  double cubic_coefficient = -0.75;
};

struct ResizedDim {
  int64_t in = 1;
  int64_t out = 1;
  double scale = 1;
  double roi_start = 0;  // of tf_crop_and_resize, as shares
  double roi_end = 1;
};

// Row by row, out x in: what each element of the result is the weighted sum of. A row of zeros stands for a place
// outside of the input, where tf_crop_and_resize has another value. Unimplemented for a mode or rule that is not known.
absl::StatusOr<std::vector<double>> ResizeWeights(const ResizeRule& rule, const ResizedDim& dim);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_RESIZE_WEIGHTS_H_
