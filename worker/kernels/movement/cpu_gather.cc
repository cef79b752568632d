// Slices that are picked along an axis by index, and their gradient.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/movement/cpu_sizes.h"
#include "worker/kernels/picks.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

// What an index outside of a tensor picks: NaN, or 0 in a type that has none.
template <typename T>
T OutsideOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return static_cast<T>(0x7fc00000u);
    case DType::kF64:
      return static_cast<T>(0x7ff8000000000000u);
    case DType::kBF16:
      return static_cast<T>(0x7fc0u);
    case DType::kF16:
      return static_cast<T>(0x7e00u);
    case DType::kF8E5M2:
    case DType::kF8E4M3:
      return static_cast<T>(0x7fu);
    default:
      return T{0};
  }
}

template <typename T>
void Gather(const HostCall& call) {
  const AxisExtents e(call.attrs<GatherAttributes>().axis, call.in_shape(0));
  const Indices indices(call, 1);
  const T outside = OutsideOf<T>(call.output_infos[0].dtype);
  const int64_t count = NumElements(call.in_shape(1));
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  ParallelFor(e.outer * count, GrainOf(e.inner), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t index = indices.at(row % count, e.extent);
      const T* from = x + (row / count * e.extent + index) * e.inner;
      if (index < 0) std::fill_n(y + row * e.inner, e.inner, outside);
      if (index >= 0) std::memcpy(y + row * e.inner, from, static_cast<size_t>(e.inner) * sizeof(T));
    }
  });
}

// Every part of the columns adds all rows in index order, so that no bit depends on the parts.
void GatherGrad(const HostCall& call) {
  const AxisExtents e(call.attrs<GatherAttributes>().axis, call.out_shape(0));
  const Indices indices(call, 1);
  const int64_t count = NumElements(call.in_shape(1));
  const float* dy = call.in<float>(0);
  float* dx = call.out<float>(0);
  bool outside = false;
  for (int64_t i = 0; i < count; ++i) outside = outside || indices.at(i, e.extent) < 0;
  std::fill_n(dx, NumElements(call.out_shape(0)), outside ? std::numeric_limits<float>::quiet_NaN() : 0.0f);
  if (outside) return;
  ParallelFor(e.inner, GrainOf(e.outer * count), [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < e.outer * count; ++row) {
      const int64_t index = indices.at(row % count, e.extent);
      const float* from = dy + row * e.inner;
      float* to = dx + (row / count * e.extent + index) * e.inner;
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    }
  });
}

}  // namespace

OwnFunction OwnGather(const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype;  // an output may be absent
  switch (request.node->op) {
    case OpType::kGather:
      return {ForSize(dtype, []<typename T>() -> HostFunction { return &Gather<T>; }), "own:gather"};
    case OpType::kGatherGrad:
      if (dtype != DType::kF32) return {.refusal = kOtherType};
      return {&GatherGrad, "own:gather"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
