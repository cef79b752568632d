#include "worker/profile/operations.h"

#include <variant>

#include "worker/device/matrix_shapes.h"

namespace lockstep::worker {
namespace {

int64_t OfProducts(const device::BatchedMatrixShape& shape) {
  return 2 * shape.count() * shape.matrix.m * shape.matrix.n * shape.matrix.k;
}

// Every element of `many` meets the weights of one of their leading dimension's entries.
int64_t OfConvolution(const Shape& many, const Shape& weights) {
  return weights[0] == 0 ? 0 : 2 * NumElements(many) * (NumElements(weights) / weights[0]);
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
