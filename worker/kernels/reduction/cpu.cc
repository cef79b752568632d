#include <algorithm>
#include <array>
#include <limits>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/reduction/reduction.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr int64_t kGrain = 16384;  // elements
constexpr int64_t kColumns = 64;

// The dimensions of X, the innermost first. Neighbours that are both reduced, or both kept, are one group.
class Groups {
 public:
  Groups(const ReduceAttributes& attributes, const Shape& shape) {
    const Shape kept = KeptShape(attributes, shape);
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0; step *= shape[i]) {
      if (shape[i] == 1) continue;
      const bool reduced = kept[i] == 1;
      if (count_ > 0 && count_ <= kMostGroups && groups_[count_ - 1].reduced == reduced) {
        groups_[count_ - 1].extent *= shape[i];
        continue;
      }
      if (count_ < kMostGroups) groups_[count_] = {shape[i], step, reduced};
      ++count_;
    }
  }

  bool fits() const { return count_ <= kMostGroups; }
  bool reduces_innermost() const { return count_ == 0 || groups_[0].reduced; }
  int64_t innermost() const { return count_ == 0 ? 1 : groups_[0].extent; }

  // Combinations of the groups behind the innermost one that are reduced, or kept, and where in X one of them lies.
  int64_t Count(bool reduced) const {
    int64_t count = 1;
    for (size_t g = 1; g < count_; ++g) count *= groups_[g].reduced == reduced ? groups_[g].extent : 1;
    return count;
  }
  int64_t Offset(int64_t index, bool reduced) const {
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

// Columns side by side, at most kColumns, each in the order of the rows.
void ColumnSums(const float* x, float* y, const Groups& groups, int64_t rows, int64_t count, double divisor) {
  double sums[kColumns] = {};
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + groups.Offset(r, true);
    for (int64_t i = 0; i < count; ++i) sums[i] += row[i];
  }
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(sums[i] / divisor);
}

void Reduce(const HostCall& call) {
  const Groups groups(call.attrs<ReduceAttributes>(), call.in_shape(0));
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  const int64_t kept = groups.Count(false), rows = groups.Count(true), innermost = groups.innermost();
  const int64_t summed = groups.reduces_innermost() ? rows * innermost : rows;
  const double divisor = call.op == OpType::kReduceMean ? static_cast<double>(summed) : 1.0;
  if (groups.reduces_innermost()) {
    ParallelFor(kept, kGrain / std::clamp<int64_t>(summed, 1, kGrain), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        double sum = 0;
        for (int64_t r = 0; r < rows; ++r) {
          const float* row = x + groups.Offset(o, false) + groups.Offset(r, true);
          sum += LaneSum(innermost, [row](int64_t i) { return double{row[i]}; });
        }
        y[o] = static_cast<float>(sum / divisor);
      }
    });
    return;
  }
  const int64_t parts = (innermost + kColumns - 1) / kColumns;
  ParallelFor(kept * parts, kGrain / std::clamp<int64_t>(summed * kColumns, 1, kGrain),
              [&](int64_t begin, int64_t end) {
                for (int64_t p = begin; p < end; ++p) {
                  const int64_t first = p % parts * kColumns;
                  ColumnSums(x + groups.Offset(p / parts, false) + first, y + p / parts * innermost + first, groups,
                             rows, std::min(kColumns, innermost - first), divisor);
                }
              });
}

// The larger, or the smaller; a NaN stays.
template <bool kLargest>
float Extreme(float best, float x) {
  const bool better = kLargest ? x > best : x < best;
  return better || x != x ? x : best;
}

template <bool kLargest>
float RowExtreme(const float* x, int64_t count, float best) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = best;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = Extreme<kLargest>(lanes[l], x[i + l]);
  }
  for (int64_t l = 0; i < count; ++i, ++l) lanes[l] = Extreme<kLargest>(lanes[l], x[i]);
  for (const float lane : lanes) best = Extreme<kLargest>(best, lane);
  return best;
}

template <bool kLargest>
void ReduceExtreme(const HostCall& call) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Groups groups(call.attrs<ReduceAttributes>(), call.in_shape(0));
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  const int64_t kept = groups.Count(false), rows = groups.Count(true), innermost = groups.innermost();
  const int64_t width = groups.reduces_innermost() ? 1 : innermost;
  const int64_t grain = kGrain / std::clamp<int64_t>(rows * innermost, 1, kGrain);
  ParallelFor(kept, grain, [&](int64_t begin, int64_t end) {
    std::fill(y + begin * width, y + end * width, kLargest ? -kInfinity : kInfinity);
    for (int64_t o = begin; o < end; ++o) {
      float* to = y + o * width;
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = x + groups.Offset(o, false) + groups.Offset(r, true);
        if (groups.reduces_innermost()) {
          *to = RowExtreme<kLargest>(row, innermost, *to);
        } else {
          for (int64_t i = 0; i < innermost; ++i) to[i] = Extreme<kLargest>(to[i], row[i]);
        }
      }
    }
  });
}

HostFunction FunctionOf(OpType op) {
  switch (op) {
    case OpType::kReduceSum:
    case OpType::kReduceMean:
      return &Reduce;
    case OpType::kReduceMax:
      return &ReduceExtreme<true>;
    case OpType::kReduceMin:
      return &ReduceExtreme<false>;
    default:
      return nullptr;
  }
}

}  // namespace

OwnFunction OwnReduction(const KernelRequest& request) {
  const HostFunction function = FunctionOf(request.node->op);
  if (function == nullptr) return {};
  if (!Groups(AttributesOf<ReduceAttributes>(request), request.inputs[0].shape).fits()) return {};
  return {function, "own:reduce"};
}

}  // namespace lockstep::device::cpu::LS_CODE
