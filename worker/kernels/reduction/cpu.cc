#include <cstring>
#include <optional>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/reduction/reduction.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

// X as [outer, extent, inner], the middle being reduced; nullopt where the reduced axes are not neighbours.
struct Extents {
  int64_t outer = 1;
  int64_t extent = 1;
  int64_t inner = 1;
};

std::optional<Extents> Split(const ReduceAttributes& attributes, const Shape& shape) {
  const Shape kept = KeptShape(attributes, shape);
  Extents e;
  int part = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    const bool reduced = kept[i] == 1;
    if (reduced && part == 0) part = 1;
    if (!reduced && part == 1) part = 2;
    if (reduced && part == 2) return std::nullopt;
    (part == 0 ? e.outer : part == 1 ? e.extent : e.inner) *= shape[i];
  }
  return e;
}

constexpr int64_t kColumns = 64;

// Columns [begin, end) of one outer index, in index order, at most kColumns of them.
void ColumnSums(const float* x, float* y, const Extents& e, int64_t begin, int64_t end, double divisor) {
  double sums[kColumns] = {};
  for (int64_t r = 0; r < e.extent; ++r) {
    for (int64_t i = begin; i < end; ++i) sums[i - begin] += x[r * e.inner + i];
  }
  for (int64_t i = begin; i < end; ++i) y[i] = static_cast<float>(sums[i - begin] / divisor);
}

void Reduce(const HostCall& call) {
  const Extents e = *Split(call.attrs<ReduceAttributes>(), call.in_shape(0));
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  const double divisor = call.op == OpType::kReduceMean ? static_cast<double>(e.extent) : 1.0;
  if (e.inner == 1) {
    ParallelFor(e.outer, std::max<int64_t>(1, 16384 / e.extent), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const float* row = x + o * e.extent;
        y[o] = static_cast<float>(LaneSum(e.extent, [row](int64_t i) { return double{row[i]}; }) / divisor);
      }
    });
    return;
  }
  const int64_t parts = (e.inner + kColumns - 1) / kColumns;
  ParallelFor(e.outer * parts, std::max<int64_t>(1, 16384 / (e.extent * kColumns)), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t o = p / parts;
      const int64_t first = p % parts * kColumns;
      ColumnSums(x + o * e.extent * e.inner, y + o * e.inner, e, first, std::min(e.inner, first + kColumns), divisor);
    }
  });
}

}  // namespace

OwnFunction OwnReduction(const KernelRequest& request) {
  if (request.node->op != OpType::kReduceSum && request.node->op != OpType::kReduceMean) return {};
  if (!Split(AttributesOf<ReduceAttributes>(request), request.inputs[0].shape)) return {};
  return {&Reduce, "own:reduce"};
}

}  // namespace lockstep::device::cpu::LS_CODE
