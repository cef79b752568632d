#include "worker/kernels/cuda/row_plan.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <set>

namespace lockstep::device::cuda {
namespace {

// The offsets that a plan gives are those of a walk over the tensor, row by row in row-major order.
void CheckOffsets(const Shape& shape, const std::vector<bool>& walked) {
  const RowPlan plan = PlanRows(shape, walked);
  REQUIRE(plan.served);
  std::vector<int> next(static_cast<size_t>(plan.row_count), 0);
  Shape at(shape.size(), 0);
  for (int64_t offset = 0; offset < NumElements(shape); ++offset) {
    int64_t row = 0;
    int64_t rest = offset;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at[d] = rest % shape[d];
    for (size_t d = 0; d < shape.size(); ++d) row = walked[d] ? row : row * shape[d] + at[d];
    const int i = next[static_cast<size_t>(row)]++;
    REQUIRE(plan.rows.Offset(static_cast<int>(row)) + plan.elements.Offset(i) == offset);
  }
  for (const int count : next) REQUIRE(count == plan.extent);
}

TEST_CASE("row plan: rows and elements count in row-major order, whichever dimensions are walked", "[cuda]") {
  const Shape shape = {3, 2, 1, 4, 5, 2};
  for (unsigned mask = 0; mask < 64; ++mask) {
    std::vector<bool> walked(shape.size());
    for (size_t d = 0; d < shape.size(); ++d) walked[d] = (mask >> d) % 2 == 1;
    CheckOffsets(shape, walked);
  }
  CheckOffsets({}, {});
}

TEST_CASE("row plan: parts cover a row once, and follow from shapes", "[cuda]") {
  for (const Shape& shape : {Shape{3, 100000}, Shape{1, 17}, Shape{5000, 300}, Shape{64, 802816}}) {
    const RowPlan plan = InParts(PlanTail(shape, 1));
    CHECK(plan.parts >= 1);
    CHECK(int64_t{plan.chunk} * plan.parts >= plan.extent);
    CHECK(int64_t{plan.chunk} * (plan.parts - 1) < plan.extent);
  }
  CHECK(InParts(PlanTail({3, 100000}, 1)).parts > 1);
  CHECK(InParts(PlanTail({1, 17}, 1)).parts == 1);
}

TEST_CASE("row plan: neighbouring rows share a block, long ones have one each", "[cuda]") {
  CHECK(PlanAxis({100, 10}, -1).kind == TeamKind::kThread);
  CHECK(PlanAxis({100, 768}, -1).kind == TeamKind::kWarp);
  CHECK(PlanAxis({100, 50257}, -1).kind == TeamKind::kBlock);
  CHECK(PlanAxis({100, 768}, 0).kind == TeamKind::kColumn);
  CHECK(PlanAxis({100, 3}, 0).kind == TeamKind::kWarp);
}

TEST_CASE("row plan: what cannot be addressed is not served, and nothing is", "[cuda]") {
  const Shape alternating = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
  std::vector<bool> walked(alternating.size());
  for (size_t d = 0; d < walked.size(); ++d) walked[d] = d % 2 == 0;
  CHECK_FALSE(PlanRows(alternating, walked).served);
  CHECK_FALSE(PlanAll(int64_t{1} << 31).served);
  CHECK(PlanTail({0, 5}, 1).served);
  CHECK(PlanTail({0, 5}, 1).row_count == 0);
  CHECK(PlanTail({5, 0}, 1).extent == 0);
}

}  // namespace
}  // namespace lockstep::device::cuda
