#include <vector>

#include "common/graph/ops/einsum_equation.h"
#include "worker/device/reference/families.h"

namespace lockstep::device::reference {
namespace {

// The distance in memory that one step along each label makes; 0 where the operand has no such dimension or broadcasts.
std::vector<int64_t> Strides(const std::vector<size_t>& dims, const Shape& shape, size_t labels) {
  std::vector<int64_t> strides(labels, 0);
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1) strides[dims[d]] += stride;
    stride *= shape[d];
  }
  return strides;
}

// Adds a product to one element of the result for every combination of labels, in index order; the sums lie in the
// workspace. The first factor may be dY, and the result one of the operands.
template <typename T>
void SumProducts(const HostCall& call, const EinsumTerms& terms, const std::vector<const T*>& factors,
                 const std::vector<std::vector<int64_t>>& factor_strides, const std::vector<int64_t>& result_strides) {
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t results = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < results; ++i) sums[i] = 0;
  const size_t labels = terms.extents.size();
  const int64_t combinations = NumElements(Shape(terms.extents.begin(), terms.extents.end()));
  std::vector<int64_t> at(labels);
  const auto offset = [&](const std::vector<int64_t>& strides) {
    int64_t sum = 0;
    for (size_t l = 0; l < labels; ++l) sum += at[l] * strides[l];
    return sum;
  };
  for (int64_t i = 0; i < combinations; ++i) {
    int64_t rest = i;
    for (size_t l = labels; l-- > 0; rest /= terms.extents[l]) at[l] = rest % terms.extents[l];
    double product = 1;
    for (size_t f = 0; f < factors.size(); ++f) product *= factors[f][offset(factor_strides[f])];
    sums[offset(result_strides)] += product;
  }
  for (int64_t i = 0; i < results; ++i) call.out<T>(0)[i] = static_cast<T>(sums[i]);
}

EinsumTerms TermsOf(const HostCall& call, size_t first) {
  std::vector<Shape> shapes;
  for (size_t i = first; i < call.input_infos.size(); ++i) shapes.push_back(call.in_shape(i));
  // Shape inference has accepted the equation.
  return *ParseEinsum(call.attrs<EinsumAttributes>().equation, shapes);
}

std::vector<int64_t> OutputStrides(const EinsumTerms& terms) {
  std::vector<size_t> dims;
  for (size_t d = 0; d < terms.output_rank; ++d) dims.push_back(d);
  return Strides(dims, terms.output_shape(), terms.extents.size());
}

template <typename T>
void Einsum(const HostCall& call) {
  const EinsumTerms terms = TermsOf(call, 0);
  std::vector<const T*> factors;
  std::vector<std::vector<int64_t>> strides;
  for (size_t i = 0; i < terms.operands.size(); ++i) {
    factors.push_back(call.in<T>(i));
    strides.push_back(Strides(terms.operands[i], call.in_shape(i), terms.extents.size()));
  }
  SumProducts(call, terms, factors, strides, OutputStrides(terms));
}

template <typename T>
void EinsumGrad(const HostCall& call) {
  const EinsumTerms terms = TermsOf(call, 1);
  const auto wanted = static_cast<size_t>(call.attrs<EinsumAttributes>().operand);
  std::vector<const T*> factors = {call.in<T>(0)};
  std::vector<std::vector<int64_t>> strides = {OutputStrides(terms)};
  for (size_t i = 0; i < terms.operands.size(); ++i) {
    if (i == wanted) continue;
    factors.push_back(call.in<T>(1 + i));
    strides.push_back(Strides(terms.operands[i], call.in_shape(1 + i), terms.extents.size()));
  }
  SumProducts(call, terms, factors, strides,
              Strides(terms.operands[wanted], call.in_shape(1 + wanted), terms.extents.size()));
}

}  // namespace

template <typename T>
HostFunction EinsumFunction(OpType type) {
  switch (type) {
    case OpType::kEinsum:
      return &Einsum<T>;
    case OpType::kEinsumGrad:
      return &EinsumGrad<T>;
    default:
      return nullptr;
  }
}

template HostFunction EinsumFunction<float>(OpType);
template HostFunction EinsumFunction<double>(OpType);

}  // namespace lockstep::device::reference
