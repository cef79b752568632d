// Ops that cut a part out of a tensor. Elements of any type; gradients F32 and F64.
//
//   Slice(X) -> Y                    along axes[i] the elements starts[i], starts[i] + steps[i], ... in front of
//                                    ends[i]. Negative bounds count from the end, and bounds are clamped as in ONNX.
//                                    Without axes the first ones are meant, without steps 1
//   lockstep.SliceGrad(dY) -> dX     for X of `input_shape`: dY where Slice read X, 0 elsewhere
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_SLICE_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_SLICE_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

// What is taken along one axis: `count` elements from `start`, `step` apart.
struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

struct SliceAttributes {
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  std::vector<int64_t> axes;           // may be negative
  std::vector<int64_t> steps;          // none is 0
  std::vector<int64_t> input_shape{};  // of SliceGrad
  friend bool operator==(const SliceAttributes&, const SliceAttributes&) = default;

  // What is taken along `axis` (not negative) of a tensor of this rank, with `extent` elements along it.
  SliceRange RangeOf(int64_t axis, int64_t rank, int64_t extent) const;
};

absl::Span<const OpSchema> SliceFamily();

// Defined in the header because kernels call it too.
inline SliceRange SliceAttributes::RangeOf(int64_t axis, int64_t rank, int64_t extent) const {
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t named = axes.empty() ? static_cast<int64_t>(i) : axes[i] < 0 ? axes[i] + rank : axes[i];
    if (named != axis) continue;
    const int64_t step = steps.empty() ? 1 : steps[i];
    const auto draw_in = [extent](int64_t bound, int64_t low, int64_t high) {
      if (bound < 0) bound += extent;
      return bound < low ? low : bound > high ? high : bound;
    };
    if (extent == 0) return {0, step, 0};
    const int64_t start = step > 0 ? draw_in(starts[i], 0, extent) : draw_in(starts[i], 0, extent - 1);
    const int64_t end = step > 0 ? draw_in(ends[i], 0, extent) : draw_in(ends[i], -1, extent - 1);
    const int64_t span = step > 0 ? end - start : start - end;
    return {start, step, span <= 0 ? 0 : 1 + (span - 1) / (step > 0 ? step : -step)};
  }
  return {0, 1, extent};
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_SLICE_H_
