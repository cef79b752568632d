#include "worker/profile/operations.h"

#include <algorithm>
#include <variant>

#include "worker/kernels/attention/attention.h"
#include "worker/kernels/product/product.h"

namespace lockstep::worker {
namespace {

int64_t OfProducts(const device::BatchedMatrixShape& shape) {
  return 2 * shape.count() * shape.matrix.m * shape.matrix.n * shape.matrix.k;
}

// Every element of `many` meets the weights of one of their leading dimension's entries.
int64_t OfConvolution(const Shape& many, const Shape& weights) {
  return weights[0] == 0 ? 0 : 2 * NumElements(many) * (NumElements(weights) / weights[0]);
}

// Of the products over all pairs of a query and a key that it sees; backward makes the scores once more.
int64_t OfAttention(const device::KernelRequest& request) {
  const bool backward = request.node->op == OpType::kAttentionGrad;
  const size_t q = backward ? 1 : 0;
  const auto& attributes = std::get<AttentionAttributes>(request.node->attributes);
  const device::AttentionShape shape(attributes, request.inputs[q].shape, request.inputs[q + 1].shape,
                                     request.inputs[q + 2].shape);
  int64_t pairs = shape.queries * shape.keys;
  if (attributes.causal) {
    const int64_t growing = std::min(shape.queries, shape.keys);
    pairs = growing * (growing + 1) / 2 + (shape.queries - growing) * shape.keys;
  }
  const int64_t per_pair = backward ? 3 * shape.q.size + 2 * shape.v.size : shape.q.size + shape.v.size;
  return 2 * shape.batch * shape.heads * pairs * per_pair;
}

}  // namespace

bool IsProduct(OpType op) {
  switch (op) {
    case OpType::kGemm:
    case OpType::kMatMul:
    case OpType::kBatchMatMul:
    case OpType::kConv:
    case OpType::kConvTranspose:
    case OpType::kConvGradInput:
    case OpType::kConvGradWeight:
    case OpType::kAttention:
    case OpType::kAttentionGrad:
      return true;
    default:
      return false;
  }
}

int64_t ArithmeticOperations(const device::KernelRequest& request) {
  if (!IsProduct(request.node->op)) return 0;
  const Shape& first = request.inputs[0].shape;
  const Shape& second = request.inputs[1].shape;
  const OpAttributes& attributes = request.node->attributes;
  switch (request.node->op) {
    case OpType::kMatMul:
      return OfProducts(device::MatMulShape(first, second));
    case OpType::kBatchMatMul:
      return OfProducts(device::BatchMatMulShape(std::get<BatchMatMulAttributes>(attributes), first, second));
    case OpType::kGemm: {
      const device::MatrixShape shape = device::GemmShape(std::get<GemmAttributes>(attributes), first, second);
      return 2 * shape.m * shape.n * shape.k;
    }
    case OpType::kConv:
      return OfConvolution(request.outputs[0].shape, second);
    case OpType::kConvTranspose:
    case OpType::kConvGradInput:
      return OfConvolution(first, second);
    case OpType::kAttention:
    case OpType::kAttentionGrad:
      return OfAttention(request);
    case OpType::kConvGradWeight:
      return OfConvolution(first, request.outputs[0].shape);
    default:
      return 0;
  }
}

int64_t BytesTouched(const device::KernelRequest& request) {
  int64_t bytes = 0;
  for (const auto* operands : {&request.inputs, &request.outputs}) {
    for (const device::Operand& operand : *operands) {
      if (operand.present) bytes += NumElements(operand.shape) * DTypeSize(operand.dtype);
    }
  }
  return bytes;
}

}  // namespace lockstep::worker
