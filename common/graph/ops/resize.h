// Resampling of a grid, dimension by dimension.
//
//   Resize(X) -> Y              output dimension: floor(input * scale), or what `sizes` says
//   lockstep.ResizeGrad(dY) -> dX        shape of dX: the attribute input_shape
//
// `coordinates` maps an output coordinate to an input coordinate; nearest takes the element there, linear interpolates
// between its two neighbours. Coordinates outside the input are clamped to its border.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_RESIZE_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_RESIZE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

enum class ResizeMode : uint8_t { kNearest, kLinear };
enum class ResizeCoordinates : uint8_t { kHalfPixel, kPytorchHalfPixel, kAlignCorners, kAsymmetric, kTfHalfPixelForNn };
enum class ResizeRounding : uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

struct ResizeAttributes {
  ResizeMode mode = ResizeMode::kNearest;
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  ResizeRounding rounding = ResizeRounding::kRoundPreferFloor;  // of nearest
  // One of the two is given: an entry per axis in `axes`, or per dimension where that is empty.
  std::vector<double> scales;
  std::vector<int64_t> sizes;
  std::vector<int64_t> axes;  // may be negative
  // The whole shape of X; only ResizeGrad has it.
  std::vector<int64_t> input_shape;
  friend bool operator==(const ResizeAttributes&, const ResizeAttributes&) = default;
};

absl::Span<const OpSchema> ResizeFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_RESIZE_H_
