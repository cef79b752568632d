// The index arithmetic of padding, for kernels: the source of a padded element, as PadAttributes::Source, the inverse
// mapping, and the axes of a whole Pad.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_PADDING_PADDING_H_
#define LOCKSTEP_WORKER_KERNELS_PADDING_PADDING_H_

#include <cstdint>

#include "common/graph/ops/pad.h"
#include "common/math/host_device.h"
#include "common/tensor/shape.h"

namespace lockstep::device {

struct PadAxis {
  PadMode mode = PadMode::kConstant;
  int64_t before = 0;
  int64_t behind = 0;
  int64_t extent = 1;  // of X
  int64_t padded = 1;  // of Y

  // Negative padding cuts X. The rest is `count` elements from `first` on, which begin at `lead` in Y.
  LS_HD int64_t first() const { return before < 0 ? -before : 0; }
  LS_HD int64_t count() const { return extent - first() + (behind < 0 ? behind : 0); }
  LS_HD int64_t lead() const { return before > 0 ? before : 0; }
  // The period of Source in wrap and reflect mode.
  LS_HD int64_t period() const {
    const int64_t left = count();
    return mode == PadMode::kWrap ? left : left > 1 ? 2 * (left - 1) : 1;
  }

  // The index in X of the source of element `at` of Y; -1 for the constant.
  LS_HD int64_t Source(int64_t at) const {
    if (mode == PadMode::kConstant) {
      const int64_t from = at - before;
      return from >= 0 && from < extent ? from : -1;
    }
    const int64_t left = count();
    int64_t place = at - lead();
    if (mode == PadMode::kEdge) {
      place = place < 0 ? 0 : place >= left ? left - 1 : place;
    } else {
      place %= period();
      if (place < 0) place += period();
      if (mode == PadMode::kReflect && place >= left) place = period() - place;
    }
    return first() + place;
  }

  // The first index in Y after `at` whose source is `source`; `padded` if there is none.
  LS_HD int64_t Next(int64_t source, int64_t at) const {
    if (mode == PadMode::kConstant) {
      const int64_t to = source + before;
      return to > at && to < padded ? to : padded;
    }
    const int64_t place = source - first();
    const int64_t left = count();
    if (place < 0 || place >= left) return padded;
    int64_t next = at + 1;
    if (mode == PadMode::kEdge) {
      const int64_t low = place == 0 ? 0 : place + lead();
      const int64_t high = place == left - 1 ? padded - 1 : place + lead();
      next = next < low ? low : next;
      return next <= high ? next : padded;
    }
    // The source appears in every period at `place` and at its mirror image.
    const int64_t mirrored = mode == PadMode::kReflect && place > 0 ? period() - place : place;
    int64_t inside = (next - lead()) % period();
    if (inside < 0) inside += period();
    const int64_t wait = inside <= place      ? place - inside
                         : inside <= mirrored ? mirrored - inside
                                              : period() - inside + place;
    next += wait;
    return next < padded ? next : padded;
  }
};

// The axes of a Pad, the innermost first. Neighbours that are not padded are one axis.
template <int kMost>
struct PadAxes {
  bool fits = true;  // false: there are more than kMost
  int count = 0;     // at least 1
  PadAxis axes[kMost];

  [[gnu::always_inline]] PadAxes(const PadAttributes& pad, const Shape& x, const Shape& y) {
    const auto rank = static_cast<int64_t>(x.size());
    for (size_t i = x.size(); i-- > 0;) {
      const PadRange range = pad.RangeOf(static_cast<int64_t>(i), rank);
      const PadAxis axis{pad.mode, range.before, range.behind, x[i], y[i]};
      if (count > 0 && IsPlain(axis) && IsPlain(axes[count - 1])) {
        axes[count - 1].extent *= axis.extent;
        axes[count - 1].padded *= axis.padded;
      } else if (count == kMost) {
        fits = false;
      } else {
        axes[count++] = axis;
      }
    }
    if (count == 0) axes[count++] = {};
  }

  [[gnu::always_inline]] static bool IsPlain(const PadAxis& axis) { return axis.before == 0 && axis.behind == 0; }
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_PADDING_PADDING_H_
