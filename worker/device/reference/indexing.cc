#include "worker/device/pad_source.h"
#include "worker/device/picks.h"
#include "worker/device/reference/families.h"

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
  SumInWorkspace<T>(call, [&](double* sums) {
    VisitPicks(call, call.out_shape(0), [=](int64_t picked, int64_t source, int64_t length) {
      if (source < 0) return;
      for (int64_t i = 0; i < length; ++i) sums[source + i] += dy[picked + i];
    });
  });
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

template <typename T>
HostFunction FindSum(OpType type) {
  switch (type) {
    case OpType::kGatherGrad:
    case OpType::kGatherElementsGrad:
    case OpType::kGatherNDGrad:
      return &GatherGrad<T>;
    case OpType::kPadGrad:
      return &PadGrad<T>;
    default:
      return nullptr;
  }
}

}  // namespace

HostFunction IndexingFunction(const KernelRequest& request) {
  switch (request.inputs[0].dtype) {
    case DType::kF32:
      return FindSum<float>(request.node->op);
    case DType::kF64:
      return FindSum<double>(request.node->op);
    default:
      return nullptr;
  }
}

}  // namespace lockstep::device::reference
