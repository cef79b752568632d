// Ops that make a tensor longer at its ends.
//
//   Pad(X) -> Y                    pads: how many elements in front of each of `axes` (all when empty), then how many
//                                  behind each. Negative pads cut elements off; modes other than constant pad from
//                                  the elements that are left. constant: `value`; reflect: mirrored at the last
//                                  element, edge: the last element, wrap: from the other end. Elements of any type
//   lockstep.PadGrad(dY) -> dX     of reflect, edge and wrap: each element of X of `input_shape` gets the sum of the
//                                  dY that it was copied to. F32 and F64
//   Tile(X) -> Y                   X repeated repeats[i] times along dimension i. Elements of any type
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_PAD_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_PAD_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };

// The padding of one axis.
struct PadRange {
  int64_t before = 0;
  int64_t behind = 0;
};

struct PadAttributes {
  std::vector<int64_t> pads;
  std::vector<int64_t> axes{};  // may be negative
  PadMode mode = PadMode::kConstant;
  double value = 0.0;
  std::vector<int64_t> input_shape{};  // of PadGrad
  friend bool operator==(const PadAttributes&, const PadAttributes&) = default;

  // The padding of `axis` (not negative) of a tensor of this rank.
  PadRange RangeOf(int64_t axis, int64_t rank) const;
  // Where element `at` of a padded axis comes from on an axis of `extent` elements; -1 for the constant.
  int64_t Source(int64_t at, PadRange range, int64_t extent) const;
};

struct TileAttributes {
  std::vector<int64_t> repeats;
  friend bool operator==(const TileAttributes&, const TileAttributes&) = default;
};

absl::Span<const OpSchema> PadFamily();

// Defined in the header because kernels call it too.
inline PadRange PadAttributes::RangeOf(int64_t axis, int64_t rank) const {
  const size_t count = pads.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    const int64_t named = axes.empty() ? static_cast<int64_t>(i) : axes[i] < 0 ? axes[i] + rank : axes[i];
    if (named == axis) return {pads[i], pads[count + i]};
  }
  return {};
}

inline int64_t PadAttributes::Source(int64_t at, PadRange range, int64_t extent) const {
  if (mode == PadMode::kConstant) {
    const int64_t from = at - range.before;
    return from >= 0 && from < extent ? from : -1;
  }
  // The elements that negative pads leave: `count` from `first`.
  const int64_t first = range.before < 0 ? -range.before : 0;
  const int64_t count = extent - first + (range.behind < 0 ? range.behind : 0);
  int64_t place = at - (range.before > 0 ? range.before : 0);
  if (mode == PadMode::kEdge) {
    place = place < 0 ? 0 : place >= count ? count - 1 : place;
  } else {
    const int64_t period = mode == PadMode::kWrap ? count : count > 1 ? 2 * (count - 1) : 1;
    place %= period;
    if (place < 0) place += period;
    if (mode == PadMode::kReflect && place >= count) place = period - place;
  }
  return first + place;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_PAD_H_
