#include "worker/kernels/einsum/einsum.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

// Adds a product to one element of the result for every combination of labels, in index order; the sums lie in the
// workspace.
template <typename T>
void SumProducts(const HostCall& call, bool gradient) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < call.input_infos.size(); ++i) shapes.push_back(call.in_shape(i));
  const EinsumSum sum = EinsumSumOf(call.attrs<EinsumAttributes>(), shapes, gradient);
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t results = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < results; ++i) sums[i] = 0;
  const size_t labels = sum.extents.size();
  const int64_t combinations = NumElements(sum.extents);
  std::vector<int64_t> at(labels);
  const auto offset = [&](const std::vector<int64_t>& strides) {
    int64_t total = 0;
    for (size_t l = 0; l < labels; ++l) total += at[l] * strides[l];
    return total;
  };
  for (int64_t i = 0; i < combinations; ++i) {
    int64_t rest = i;
    for (size_t l = labels; l-- > 0; rest /= sum.extents[l]) at[l] = rest % sum.extents[l];
    double product = 1;
    for (const EinsumFactor& factor : sum.factors) product *= call.in<T>(factor.input)[offset(factor.strides)];
    sums[offset(sum.result)] += product;
  }
  for (int64_t i = 0; i < results; ++i) call.out<T>(0)[i] = static_cast<T>(sums[i]);
}

}  // namespace

template <typename T>
HostFunction EinsumFunction(OpType type) {
  switch (type) {
    case OpType::kEinsum:
      return [](const HostCall& call) { SumProducts<T>(call, false); };
    case OpType::kEinsumGrad:
      return [](const HostCall& call) { SumProducts<T>(call, true); };
    default:
      return nullptr;
  }
}

template HostFunction EinsumFunction<float>(OpType);
template HostFunction EinsumFunction<double>(OpType);

}  // namespace lockstep::device::reference
