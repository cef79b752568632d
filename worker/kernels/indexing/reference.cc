#include <algorithm>
#include <limits>
#include <type_traits>

#include "worker/kernels/arithmetic/arithmetic.h"
#include "worker/kernels/padding/source.h"
#include "worker/kernels/picks.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

// Sums of the elements of the first output in the workspace, 0 before `add` runs; rounded once.
template <typename T, typename Add>
void SumInWorkspace(const HostCall& call, Add add) {
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) sums[i] = 0;
  add(sums);
  T* y = call.out<T>(0);
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(sums[i]);
}

// GatherGrad, GatherElementsGrad, GatherNDGrad: every dY is added where it was picked, in index order.
template <typename T>
void GatherGrad(const HostCall& call) {
  const T* dy = call.in<T>(0);
  bool outside = false;
  SumInWorkspace<T>(call, [&](double* sums) {
    VisitPicks(call, call.out_shape(0), [&](int64_t picked, int64_t source, int64_t length) {
      outside = outside || source < 0;
      for (int64_t i = 0; source >= 0 && i < length; ++i) sums[source + i] += dy[picked + i];
    });
  });
  if (outside) std::fill_n(call.out<T>(0), NumElements(call.out_shape(0)), std::numeric_limits<T>::quiet_NaN());
}

template <typename T>
void PadGrad(const HostCall& call) {
  const auto& pad = call.attrs<PadAttributes>();
  const T* dy = call.in<T>(0);
  const int64_t count = NumElements(call.in_shape(0));
  SumInWorkspace<T>(call, [&](double* sums) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t source = PadSource(pad, i, call.in_shape(0), call.out_shape(0));
      if (source >= 0) sums[source] += dy[i];
    }
  });
}

// ScatterElements and ScatterND with a reduction: in the workspace for floating types, rounded once.
template <typename T>
void ScatterReduce(const HostCall& call) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  const ScatterReduction reduction = call.op == OpType::kScatterND ? call.attrs<ScatterNdAttributes>().reduction
                                                                   : call.attrs<ScatterAttributes>().reduction;
  const T* updates = call.in<T>(2);
  T* y = call.out<T>(0);
  const int64_t count = NumElements(call.out_shape(0));
  auto* sums = reinterpret_cast<Sum*>(call.workspace);
  std::copy_n(call.in<T>(0), count, sums);
  bool outside = false;
  VisitPicks(call, call.out_shape(0), [&](int64_t picked, int64_t source, int64_t length) {
    outside = outside || source < 0;
    for (int64_t i = 0; source >= 0 && i < length; ++i) {
      sums[source + i] = Combine(sums[source + i], static_cast<Sum>(updates[picked + i]), reduction);
    }
  });
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<T>(sums[i]);
  if (outside && std::is_floating_point_v<T>) std::fill_n(y, count, std::numeric_limits<T>::quiet_NaN());
}

template <typename T>
HostFunction FindSum(OpType type) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (type) {
      case OpType::kGatherGrad:
      case OpType::kGatherElementsGrad:
      case OpType::kGatherNDGrad:
        return &GatherGrad<T>;
      case OpType::kPadGrad:
        return &PadGrad<T>;
      default:
        break;
    }
  }
  switch (type) {
    case OpType::kScatterElements:
    case OpType::kScatterND:
      return &ScatterReduce<T>;
    default:
      return RankingFunction<T>(type);
  }
}

}  // namespace

HostFunction IndexingFunction(const KernelRequest& request) {
  const OpType type = request.node->op;
  switch (request.inputs[0].dtype) {
    case DType::kF32:
      return FindSum<float>(type);
    case DType::kF64:
      return FindSum<double>(type);
    case DType::kI64:
      return FindSum<int64_t>(type);
    case DType::kI32:
      return FindSum<int32_t>(type);
    case DType::kI8:
      return FindSum<int8_t>(type);
    case DType::kU8:
      return FindSum<uint8_t>(type);
    default:
      return nullptr;
  }
}

}  // namespace lockstep::device::reference
