// The dimensions of a reduction's operand, and loops over the elements that belong to a result.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_REDUCTION_CPU_GROUPS_H_
#define LOCKSTEP_WORKER_KERNELS_REDUCTION_CPU_GROUPS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/reduction/reduction.h"

namespace lockstep::device::cpu::LS_CODE {

inline constexpr int64_t kReductionGrain = 16384;  // elements
inline constexpr int64_t kColumns = 64;            // adjacent results computed together

// The dimensions of X, the innermost first. Adjacent dimensions that are all reduced, or all kept, form one group.
class Groups {
 public:
  [[gnu::always_inline]] Groups(const ReduceAttributes& attributes, const Shape& shape) {
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0; step *= shape[i]) {
      if (shape[i] == 1) continue;
      const bool reduced = IsReduced(attributes, i, shape.size());
      if (count_ > 0 && count_ <= kMostGroups && groups_[count_ - 1].reduced == reduced) {
        groups_[count_ - 1].extent *= shape[i];
        continue;
      }
      if (count_ < kMostGroups) groups_[count_] = {shape[i], step, reduced};
      ++count_;
    }
  }

  [[gnu::always_inline]] bool fits() const { return count_ <= kMostGroups; }
  [[gnu::always_inline]] bool reduces_innermost() const { return count_ == 0 || groups_[0].reduced; }
  [[gnu::always_inline]] int64_t innermost() const { return count_ == 0 ? 1 : groups_[0].extent; }

  // The number of index combinations over the reduced (or kept) groups other than the innermost one, and the offset in
  // X of one of them.
  [[gnu::always_inline]] int64_t Count(bool reduced) const {
    int64_t count = 1;
    for (size_t g = 1; g < count_; ++g) count *= groups_[g].reduced == reduced ? groups_[g].extent : 1;
    return count;
  }
  [[gnu::always_inline]] int64_t Offset(int64_t index, bool reduced) const {
    int64_t offset = 0;
    for (size_t g = 1; g < count_; ++g) {
      if (groups_[g].reduced != reduced) continue;
      offset += index % groups_[g].extent * groups_[g].step;
      index /= groups_[g].extent;
    }
    return offset;
  }

 private:
  static constexpr size_t kMostGroups = 8;
  struct Group {
    int64_t extent;
    int64_t step;
    bool reduced;
  };
  std::array<Group, kMostGroups> groups_;
  size_t count_ = 0;
};

// Splits the results over threads: calls body(base, first, count) for `count` <= kColumns results from number `first`
// on; `base` is the offset in X of the first element. `count` is 1 if the innermost dimension is reduced.
template <typename Body>
[[gnu::always_inline]] inline void ForResults(const Groups& groups, const Body& body) {
  const int64_t kept = groups.Count(false), innermost = groups.innermost();
  const bool along = groups.reduces_innermost();
  const int64_t parts = along ? 1 : (innermost + kColumns - 1) / kColumns;
  const int64_t elements = groups.Count(true) * (along ? innermost : std::min(kColumns, innermost));
  ParallelFor(kept * parts, kReductionGrain / std::clamp<int64_t>(elements, 1, kReductionGrain),
              [&](int64_t begin, int64_t end) {
                for (int64_t p = begin; p < end; ++p) {
                  const int64_t first = p % parts * kColumns;
                  const int64_t width = along ? 1 : innermost;
                  body(groups.Offset(p / parts, false) + first, p / parts * width + first,
                       std::min(kColumns, width - first));
                }
              });
}

// states[k] = fold(states[k], i, k) for every element i of X that belongs to result k of `count`, in index order.
template <typename State, typename Fold>
[[gnu::always_inline]] inline void FoldElements(const Groups& groups, int64_t base, int64_t count, State* states,
                                                const Fold& fold) {
  const int64_t rows = groups.Count(true), innermost = groups.innermost();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = base + groups.Offset(r, true);
    if (groups.reduces_innermost()) {
      State state = states[0];
      for (int64_t i = 0; i < innermost; ++i) state = fold(state, at + i, int64_t{0});
      states[0] = state;
    } else {
      for (int64_t k = 0; k < count; ++k) states[k] = fold(states[k], at + k, k);
    }
  }
}

// to[i] = value(i, k) for every element i of X that belongs to result k of `count`.
template <typename Value>
[[gnu::always_inline]] inline void WriteElements(const Groups& groups, int64_t base, int64_t count, float* to,
                                                 const Value& value) {
  const int64_t rows = groups.Count(true), innermost = groups.innermost();
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = base + groups.Offset(r, true);
    if (groups.reduces_innermost()) {
#pragma GCC ivdep
      for (int64_t i = 0; i < innermost; ++i) to[at + i] = value(at + i, int64_t{0});
    } else {
#pragma GCC ivdep
      for (int64_t k = 0; k < count; ++k) to[at + k] = value(at + k, k);
    }
  }
}

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_REDUCTION_CPU_GROUPS_H_
