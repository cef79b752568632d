#include "worker/kernels/cuda/row_plan.h"

#include <algorithm>
#include <limits>

namespace lockstep::device::cuda {
namespace {

// Less than all by what the largest stride of a loop adds to its last index.
constexpr int64_t kMostIndices = std::numeric_limits<int>::max() - 4096;

// Threads that keep the largest GPU busy.
constexpr int64_t kManyThreads = int64_t{1} << 18;
constexpr int kMostParts = 256;

struct Level {
  int64_t extent;
  int64_t stride;
};

bool FillNest(const std::vector<Level>& levels, Nest* nest) {
  if (levels.size() > Nest::kLevels) return false;
  nest->levels = std::max(1, static_cast<int>(levels.size()));
  for (size_t i = 0; i < levels.size(); ++i) {
    nest->extents[i] = FastDivide(levels[i].extent);
    nest->strides[i] = levels[i].stride;
  }
  return true;
}

TeamKind ChooseKind(const RowPlan& plan, bool rows_innermost) {
  // Below that many elements most lanes of a warp would idle.
  if (plan.extent <= 16) return TeamKind::kThread;
  if (rows_innermost && plan.row_count >= 32) return TeamKind::kColumn;
  return plan.extent <= 1024 ? TeamKind::kWarp : TeamKind::kBlock;
}

}  // namespace

RowPlan PlanRows(const Shape& shape, const std::vector<bool>& walked) {
  RowPlan plan;
  // Neighbouring dimensions of one side are one dimension. [0]: kept, [1]: walked.
  std::vector<Level> sides[2];
  int64_t counts[2] = {1, 1};
  int last = -1;
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const int side = walked[d] ? 1 : 0;
    counts[side] *= shape[d];
    if (shape[d] == 1) continue;
    if (side == last) {
      sides[side].back().extent *= shape[d];
    } else {
      sides[side].push_back({shape[d], stride});
    }
    last = side;
    stride *= shape[d];
  }
  if (counts[0] > kMostIndices || counts[1] > kMostIndices) return plan;
  plan.row_count = counts[0];
  plan.extent = static_cast<int>(counts[1]);
  plan.chunk = plan.extent;
  // Nothing is addressed where there is nothing.
  const bool empty = counts[0] == 0 || counts[1] == 0;
  plan.served = empty || (FillNest(sides[0], &plan.rows) && FillNest(sides[1], &plan.elements));
  const bool rows_innermost = !sides[0].empty() && sides[0][0].stride == 1;
  plan.kind = ChooseKind(plan, rows_innermost);
  return plan;
}

RowPlan PlanAxis(const Shape& shape, int64_t axis) {
  std::vector<bool> walked(shape.size(), false);
  if (!shape.empty()) walked[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)] = true;
  return PlanRows(shape, walked);
}

RowPlan PlanTail(const Shape& shape, int64_t axis) {
  std::vector<bool> walked(shape.size(), false);
  const auto first = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
  for (size_t d = first; d < shape.size(); ++d) walked[d] = true;
  return PlanRows(shape, walked);
}

RowPlan PlanPerIndex(const Shape& shape, size_t axis) {
  std::vector<bool> walked(shape.size(), true);
  walked[axis] = false;
  return PlanRows(shape, walked);
}

RowPlan PlanAll(int64_t count) { return PlanRows({count}, {true}); }

RowPlan InParts(RowPlan plan, int least) {
  const int64_t threads = std::max<int64_t>(plan.row_count, 1) * TeamSize(plan.kind);
  const int64_t most = plan.extent / (int64_t{TeamSize(plan.kind)} * least);
  const int64_t parts = std::min({kManyThreads / threads, most, int64_t{kMostParts}});
  if (parts <= 1) return plan;
  plan.chunk = static_cast<int>((plan.extent + parts - 1) / parts);
  plan.parts = static_cast<int>((plan.extent + int64_t{plan.chunk} - 1) / plan.chunk);
  return plan;
}

}  // namespace lockstep::device::cuda
