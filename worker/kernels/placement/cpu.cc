// Triangles, reversed sequences and one-hot vectors of F32.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lines.h"
#include "worker/kernels/picks.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

void Trilu(const HostCall& call) {
  const auto& trilu = call.attrs<TriluAttributes>();
  const Shape& shape = call.in_shape(0);
  const int64_t columns = shape.back();
  const int64_t rows = shape[shape.size() - 2];
  ParallelFor(NumElements(shape) / columns, GrainOf(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* x = call.in<float>(0) + row * columns;
      float* y = call.out<float>(0) + row * columns;
      // The first column of the upper part, or the first behind the lower one.
      const int64_t edge = std::clamp<int64_t>(row % rows + trilu.k + (trilu.upper ? 0 : 1), 0, columns);
      const int64_t first = trilu.upper ? edge : 0, last = trilu.upper ? columns : edge;
      std::fill(y, y + first, 0.0f);
      std::copy(x + first, x + last, y + first);
      std::fill(y + last, y + columns, 0.0f);
    }
  });
}

void ReverseSequence(const HostCall& call) {
  const bool time_first = call.attrs<ReverseSequenceAttributes>().time_axis == 0;
  const Shape& shape = call.in_shape(0);
  const int64_t inner = ProductOf(shape, 2, shape.size());
  const int64_t steps = shape[time_first ? 0 : 1];
  const bool wide = call.input_infos[1].dtype == DType::kI64;
  ParallelFor(shape[0] * shape[1], GrainOf(inner), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t batch = time_first ? i % shape[1] : i / shape[1];
      const int64_t step = time_first ? i / shape[1] : i % shape[1];
      const int64_t given = wide ? call.in<int64_t>(1)[batch] : call.in<int32_t>(1)[batch];
      const int64_t length = std::clamp<int64_t>(given, 0, steps);
      const int64_t source = step < length ? length - 1 - step : step;
      const int64_t from = time_first ? source * shape[1] + batch : batch * shape[1] + source;
      std::memcpy(call.out<float>(0) + i * inner, call.in<float>(0) + from * inner,
                  static_cast<size_t>(inner) * sizeof(float));
    }
  });
}

// Indices of I32 or I64.
void OneHot(const HostCall& call) {
  const AxisExtents e(call.attrs<OneHotAttributes>().axis, call.out_shape(0));
  const Indices indices(call, 0);
  const float* values = call.in<float>(1);
  ParallelFor(e.outer, GrainOf(e.extent * e.inner), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      float* y = call.out<float>(0) + o * e.extent * e.inner;
      std::fill_n(y, e.extent * e.inner, values[0]);
      for (int64_t i = 0; i < e.inner; ++i) {
        const int64_t index = indices.at(o * e.inner + i, e.extent);
        if (index >= 0) y[index * e.inner + i] = values[1];
      }
    }
  });
}

}  // namespace

OwnFunction OwnPlacement(const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype;
  switch (request.node->op) {
    case OpType::kTrilu:
      if (dtype != DType::kF32) return {.refusal = kOtherType};
      return {&Trilu, "own:rows"};
    case OpType::kReverseSequence:
      if (dtype != DType::kF32) return {.refusal = kOtherType};
      return {&ReverseSequence, "own:rows"};
    case OpType::kOneHot:
      if (dtype != DType::kI64 && dtype != DType::kI32) return {.refusal = kOtherType};
      return {&OneHot, "own:rows"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
