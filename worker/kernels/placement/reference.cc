#include <algorithm>
#include <cmath>
#include <cstring>

#include "worker/kernels/element_bits.h"
#include "worker/kernels/picks.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

// T is an unsigned integer of the elements' size throughout.

// ScatterElements and ScatterND without a reduction.
template <typename T>
void Scatter(const HostCall& call) {
  const T* updates = call.in<T>(2);
  T* y = call.out<T>(0);
  const int64_t count = NumElements(call.out_shape(0));
  std::copy_n(call.in<T>(0), count, y);
  bool outside = false;
  VisitPicks(call, call.out_shape(0), [&](int64_t picked, int64_t source, int64_t length) {
    outside = outside || source < 0;
    if (source >= 0) std::copy_n(updates + picked, length, y + source);
  });
  const DType dtype = call.output_infos[0].dtype;
  if (outside && IsFloating(dtype)) std::fill_n(y, count, OutsideBits<T>(dtype));
}

// dY without what was written.
template <typename T>
void ScatterGrad(const HostCall& call) {
  T* dx = call.out<T>(0);
  std::copy_n(call.in<T>(0), NumElements(call.out_shape(0)), dx);
  VisitPicks(call, call.out_shape(0), [=](int64_t, int64_t source, int64_t length) {
    if (source >= 0) std::fill_n(dx + source, length, T{0});
  });
}

template <typename T>
void Trilu(const HostCall& call) {
  const auto& trilu = call.attrs<TriluAttributes>();
  const Shape& shape = call.in_shape(0);
  const int64_t columns = shape.back();
  const int64_t rows = shape[shape.size() - 2];
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  const int64_t count = NumElements(shape);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t diagonal = i % columns - i / columns % rows;
    y[i] = (trilu.upper ? diagonal >= trilu.k : diagonal <= trilu.k) ? x[i] : T{0};
  }
}

template <typename T>
void ReverseSequence(const HostCall& call) {
  const bool time_first = call.attrs<ReverseSequenceAttributes>().time_axis == 0;
  const Shape& shape = call.in_shape(0);
  const int64_t inner = ProductOf(shape, 2, shape.size());
  const int64_t steps = shape[time_first ? 0 : 1];
  const bool wide = call.input_infos[1].dtype == DType::kI64;
  for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
    const int64_t batch = time_first ? i % shape[1] : i / shape[1];
    const int64_t step = time_first ? i / shape[1] : i % shape[1];
    const int64_t given = wide ? call.in<int64_t>(1)[batch] : call.in<int32_t>(1)[batch];
    const int64_t length = std::clamp<int64_t>(given, 0, steps);
    const int64_t source = step < length ? length - 1 - step : step;
    const int64_t from = time_first ? source * shape[1] + batch : batch * shape[1] + source;
    std::copy_n(call.in<T>(0) + from * inner, inner, call.out<T>(0) + i * inner);
  }
}

// An index of OneHot in [0, depth), or -1.
int64_t HotIndex(const HostCall& call, int64_t i, int64_t depth) {
  const DType dtype = call.input_infos[0].dtype;
  int64_t index = depth;
  if (IsFloating(dtype)) {
    const double number = dtype == DType::kF32 ? static_cast<double>(call.in<float>(0)[i]) : call.in<double>(0)[i];
    const auto limit = static_cast<double>(depth);
    if (number > -limit - 1 && number < limit) index = static_cast<int64_t>(number);
  } else {
    index = dtype == DType::kI64 ? call.in<int64_t>(0)[i] : call.in<int32_t>(0)[i];
  }
  if (index < 0) index += depth;
  return index >= 0 && index < depth ? index : -1;
}

template <typename T>
void OneHot(const HostCall& call) {
  const AxisExtents e(call.attrs<OneHotAttributes>().axis, call.out_shape(0));
  const T* values = call.in<T>(1);
  T* y = call.out<T>(0);
  std::fill_n(y, NumElements(call.out_shape(0)), values[0]);
  for (int64_t i = 0; i < e.outer * e.inner; ++i) {
    const int64_t index = HotIndex(call, i, e.extent);
    if (index >= 0) y[(i / e.inner * e.extent + index) * e.inner + i % e.inner] = values[1];
  }
}

}  // namespace

template <typename T>
HostFunction PlacementFunction(const Node& node) {
  switch (node.op) {
    case OpType::kScatterElements:
      return std::get<ScatterAttributes>(node.attributes).reduction == ScatterReduction::kNone ? &Scatter<T> : nullptr;
    case OpType::kScatterND:
      return std::get<ScatterNdAttributes>(node.attributes).reduction == ScatterReduction::kNone ? &Scatter<T>
                                                                                                 : nullptr;
    case OpType::kScatterElementsGrad:
    case OpType::kScatterNDGrad:
      return &ScatterGrad<T>;
    case OpType::kTrilu:
      return &Trilu<T>;
    case OpType::kReverseSequence:
      return &ReverseSequence<T>;
    case OpType::kOneHot:
      return &OneHot<T>;
    default:
      return nullptr;
  }
}

template HostFunction PlacementFunction<uint8_t>(const Node&);
template HostFunction PlacementFunction<uint16_t>(const Node&);
template HostFunction PlacementFunction<uint32_t>(const Node&);
template HostFunction PlacementFunction<uint64_t>(const Node&);

}  // namespace lockstep::device::reference
