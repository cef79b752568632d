// Interpolation weights along one dimension, as ONNX defines Resize, for the cases that our op Resize lacks: cubic,
// antialias, and the rarer coordinate rules.
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
  double roi_start = 0;  // of tf_crop_and_resize, as a fraction of the dimension
  double roi_end = 1;
};

// The weights as a row-major matrix [out, in]: each element of the result is the sum of the input weighted by its row.
// A row of zeros marks a position outside the input, for which tf_crop_and_resize has an extrapolation value.
// Unimplemented for an unknown mode or rule.
absl::StatusOr<std::vector<double>> ResizeWeights(const ResizeRule& rule, const ResizedDim& dim);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_RESIZE_WEIGHTS_H_
