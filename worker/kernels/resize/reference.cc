#include <cstdint>
#include <vector>

#include "worker/kernels/reference/families.h"
#include "worker/kernels/resize/resize.h"

namespace lockstep::device::reference {
namespace {

// Calls visit(out_index, in_index, weight) for every input element that an output element reads, in index order.
template <typename Visit>
void ForEachTap(const ResizeAttributes& resize, const Shape& in, const Shape& out, const Visit& visit) {
  const auto axes = ResizeAxes(resize, in, out);
  const int64_t count = NumElements(out);
  // Made where they are read: those of all coordinates may take more memory than the elements.
  std::vector<ResizeTaps> here(in.size());
  std::vector<int64_t> coordinates(in.size(), -1);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (size_t axis = out.size(); axis-- > 0; rest /= out[axis]) {
      const int64_t at = rest % out[axis];
      if (at != coordinates[axis]) here[axis] = axes[axis].At(at);
      coordinates[axis] = at;
    }
    for (size_t choice = 0; choice < size_t{1} << in.size(); ++choice) {
      double weight = 1;
      int64_t from = 0;
      for (size_t axis = 0; axis < in.size(); ++axis) {
        const size_t side = choice >> axis & 1;
        weight *= here[axis].weight[side];
        from = from * in[axis] + here[axis].index[side];
      }
      if (weight != 0) visit(i, from, weight);
    }
  }
}

template <typename T>
void Scatter(const HostCall& call, bool backward) {
  const auto& resize = call.attrs<ResizeAttributes>();
  const Shape& in = backward ? call.out_shape(0) : call.in_shape(0);
  const Shape& out = backward ? call.in_shape(0) : call.out_shape(0);
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) sums[i] = 0;
  ForEachTap(resize, in, out, [&](int64_t to, int64_t from, double weight) {
    sums[backward ? from : to] += weight * call.in<T>(0)[backward ? to : from];
  });
  for (int64_t i = 0; i < count; ++i) call.out<T>(0)[i] = static_cast<T>(sums[i]);
}

}  // namespace

template <typename T>
HostFunction ResizeFunction(OpType type) {
  switch (type) {
    case OpType::kResize:
      return [](const HostCall& call) { Scatter<T>(call, false); };
    case OpType::kResizeGrad:
      return [](const HostCall& call) { Scatter<T>(call, true); };
    default:
      return nullptr;
  }
}

template HostFunction ResizeFunction<float>(OpType);
template HostFunction ResizeFunction<double>(OpType);

}  // namespace lockstep::device::reference
