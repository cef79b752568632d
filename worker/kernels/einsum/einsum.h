// Einsum and its gradient as one sum of products over all combinations of labels: the inputs that are factors, and the
// stride of each label in every factor and in the result.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_EINSUM_EINSUM_H_
#define LOCKSTEP_WORKER_KERNELS_EINSUM_EINSUM_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/graph/ops/einsum.h"
#include "common/graph/ops/einsum_equation.h"
#include "common/tensor/shape.h"

namespace lockstep::device {

struct EinsumFactor {
  size_t input;                  // number of the node's input
  std::vector<int64_t> strides;  // by label; 0 where the input lacks the label or broadcasts
};

struct EinsumSum {
  std::vector<int64_t> extents;  // by label
  std::vector<EinsumFactor> factors;
  std::vector<int64_t> result;  // strides by label; a label with stride 0 is summed over
};

inline std::vector<int64_t> EinsumStrides(const std::vector<size_t>& dims, const Shape& shape, size_t labels) {
  std::vector<int64_t> strides(labels, 0);
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1) strides[dims[d]] += stride;
    stride *= shape[d];
  }
  return strides;
}

// `inputs`: the shapes of the node's inputs. REQUIRES: shape inference has accepted them.
inline EinsumSum EinsumSumOf(const EinsumAttributes& attributes, const std::vector<Shape>& inputs, bool gradient) {
  const size_t first = gradient ? 1 : 0;
  const std::vector<Shape> shapes(inputs.begin() + static_cast<int64_t>(first), inputs.end());
  const EinsumTerms terms = *ParseEinsum(attributes.equation, shapes);
  const size_t labels = terms.extents.size();
  EinsumSum sum = {.extents = terms.extents, .factors = {}, .result = {}};
  std::vector<size_t> output_dims;
  for (size_t d = 0; d < terms.output_rank; ++d) output_dims.push_back(d);
  const std::vector<int64_t> output = EinsumStrides(output_dims, terms.output_shape(), labels);
  if (gradient) {
    sum.factors.push_back({0, output});
  } else {
    sum.result = output;
  }
  for (size_t i = 0; i < terms.operands.size(); ++i) {
    std::vector<int64_t> strides = EinsumStrides(terms.operands[i], shapes[i], labels);
    if (gradient && i == static_cast<size_t>(attributes.operand)) {
      sum.result = std::move(strides);
    } else {
      sum.factors.push_back({first + i, std::move(strides)});
    }
  }
  return sum;
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_EINSUM_EINSUM_H_
