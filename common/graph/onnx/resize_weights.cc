#include "common/graph/onnx/resize_weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<double> CoordinateOf(const std::string& rule, const ResizedDim& dim, int64_t i) {
  const auto x = static_cast<double>(i);
  const auto in = static_cast<double>(dim.in);
  const double out = dim.scale * in;  // with its fraction
  if (rule == "half_pixel") return (x + 0.5) / dim.scale - 0.5;
  if (rule == "pytorch_half_pixel") return dim.out == 1 ? -0.5 : (x + 0.5) / dim.scale - 0.5;
  if (rule == "asymmetric") return x / dim.scale;
  if (rule == "tf_half_pixel_for_nn") return (x + 0.5) / dim.scale;
  if (rule == "align_corners") return dim.out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (rule == "half_pixel_symmetric") {
    const double centre = in / 2 * (1 - static_cast<double>(dim.out) / out);
    return centre + (x + 0.5) / dim.scale - 0.5;
  }
  if (rule == "tf_crop_and_resize") {
    if (dim.out == 1) return 0.5 * (dim.roi_start + dim.roi_end) * (in - 1);
    return (dim.roi_start + x * (dim.roi_end - dim.roi_start) / (out - 1)) * (in - 1);
  }
  return absl::UnimplementedError(absl::StrCat("coordinate_transformation_mode '", rule, "' is not known"));
}

// The weight of an element at that distance.
double Cubic(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Of the elements around a coordinate that lies `ratio` behind one of them, 0 < ratio <= 1; that one is the middle,
// left of it as many as right, and one more right.
absl::StatusOr<std::vector<double>> Around(const ResizeRule& rule, double scale, double ratio) {
  if (rule.mode == "nearest") {
    if (ratio == 1 || rule.rounding == "ceil") return std::vector<double>{0, 1};
    if (rule.rounding == "floor") return std::vector<double>{1, 0};
    const bool second = rule.rounding == "round_prefer_ceil" ? ratio >= 0.5 : ratio > 0.5;
    return std::vector<double>{second ? 0.0 : 1.0, second ? 1.0 : 0.0};
  }
  if (rule.mode != "linear" && rule.mode != "cubic") {
    return absl::UnimplementedError(absl::StrCat("mode '", rule.mode, "' is not known"));
  }
  const bool linear = rule.mode == "linear";
  const double narrowed = rule.antialias ? std::min(scale, 1.0) : 1.0;
  const auto first = static_cast<int64_t>(std::floor((linear ? -1.0 : -2.0) / narrowed)) + 1;
  std::vector<double> weights;
  for (int64_t i = first; i < 2 - first; ++i) {
    const double distance = narrowed * (static_cast<double>(i) - ratio);
    weights.push_back(linear ? std::max(0.0, 1 - std::abs(distance)) : Cubic(distance, rule.cubic_coefficient));
  }
  if (!rule.antialias) return weights;
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= sum;
  return weights;
}

}  // namespace

absl::StatusOr<std::vector<double>> ResizeWeights(const ResizeRule& rule, const ResizedDim& dim) {
  std::vector<double> matrix(static_cast<size_t>(dim.in * dim.out), 0.0);
  for (int64_t i = 0; i < dim.out; ++i) {
    LS_ASSIGN_OR_RETURN(const double x, CoordinateOf(rule.coordinates, dim, i));
    const bool outside = x < 0 || x > static_cast<double>(dim.in - 1);
    if (rule.coordinates == "tf_crop_and_resize" && outside) continue;
    const double middle = std::ceil(x) - 1;
    LS_ASSIGN_OR_RETURN(std::vector<double> weights, Around(rule, dim.scale, x - middle));
    const int64_t first = static_cast<int64_t>(middle) - (static_cast<int64_t>(weights.size()) / 2 - 1);
    if (rule.exclude_outside) {
      double sum = 0;
      for (size_t k = 0; k < weights.size(); ++k) {
        const int64_t place = first + static_cast<int64_t>(k);
        if (place < 0 || place >= dim.in) weights[k] = 0;
        sum += weights[k];
      }
      for (double& weight : weights) weight /= sum;
    }
    for (size_t k = 0; k < weights.size(); ++k) {
      const int64_t place = std::clamp<int64_t>(first + static_cast<int64_t>(k), 0, dim.in - 1);
      matrix[static_cast<size_t>(i * dim.in + place)] += weights[k];
    }
  }
  return matrix;
}

}  // namespace lockstep
