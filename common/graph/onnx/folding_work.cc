#include "common/graph/onnx/folding_work.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "common/graph/ops/attributes.h"
#include "common/graph/ops/einsum_equation.h"
#include "common/tensor/shape.h"

namespace lockstep {
namespace {

// In floats: the products of several shapes fit no integer.
double Elements(absl::Span<const int64_t> shape) {
  double product = 1;
  for (const int64_t dim : shape) product *= static_cast<double>(dim);
  return product;
}

// The longer of a matrix's sides: what is summed over for each element of a product is one of them.
double LongerSide(const Shape& matrix) {
  const size_t sides = std::min<size_t>(matrix.size(), 2);
  double longest = 1;
  for (size_t i = matrix.size() - sides; i < matrix.size(); ++i) {
    longest = std::max(longest, static_cast<double>(matrix[i]));
  }
  return longest;
}

double EinsumWork(const Node& node, absl::Span<const ValueInfo* const> inputs) {
  std::vector<Shape> shapes;
  for (const ValueInfo* input : inputs) {
    if (input != nullptr) shapes.push_back(input->shape);
  }
  const auto terms = ParseEinsum(std::get<EinsumAttributes>(node.attributes).equation, shapes);
  return terms.ok() ? Elements(terms->extents) : 0;
}

}  // namespace

double FoldingWork(const Node& node, absl::Span<const ValueInfo* const> inputs, absl::Span<const ValueInfo> outputs) {
  double read = 0;
  for (const ValueInfo* input : inputs) read += input == nullptr ? 0 : Elements(input->shape);
  double written = 0;
  for (const ValueInfo& output : outputs) written += Elements(output.shape);
  switch (node.op) {
    case OpType::kGemm:
    case OpType::kMatMul:
    case OpType::kBatchMatMul:
      return read + written * LongerSide(inputs[0]->shape);
    case OpType::kConv:
    case OpType::kConvTranspose: {
      const Shape& w = inputs[1]->shape;
      return std::max(read, written) * Elements(w) / static_cast<double>(std::max<int64_t>(w[0], 1));
    }
    case OpType::kMaxPool:
    case OpType::kAveragePool:
      return read + written * Elements(std::get<PoolAttributes>(node.attributes).kernel_shape);
    case OpType::kEinsum:
      return read + EinsumWork(node, inputs);
    case OpType::kResize:
      return read + written * static_cast<double>(1 << outputs[0].shape.size());
    default:
      return read + written;
  }
}

}  // namespace lockstep
