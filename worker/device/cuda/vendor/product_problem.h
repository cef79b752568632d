// Translates a product node to the terms of GEMM libraries: one matrix shape, types, the addend, and the strides
// between the matrices of a batch. Pure, so that refusals can be tested without a GPU.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PRODUCT_PROBLEM_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PRODUCT_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/dtype.h"
#include "worker/device/kernel.h"
#include "worker/kernels/product/product.h"

namespace lockstep::device::cuda {

// The alignment in bytes of all addresses in plans and in the state.
inline constexpr int64_t kArgumentAlignment = 64;

// The type to which factors are rounded before multiplication; sums are always float32.
enum class ProductMath : uint8_t { kF32, kTf32, kBf16 };

// "f32", "tf32", "bf16".
std::string ProductMathName(ProductMath math);

// What is added to the product.
enum class Addend : uint8_t { kNone, kRow, kMatrix };

// Offsets (or strides) of the operands, in elements.
struct ProductOffsets {
  int64_t a = 0;
  int64_t b = 0;
  int64_t y = 0;
  friend bool operator==(const ProductOffsets&, const ProductOffsets&) = default;
};

// y = relu?(alpha * op(a) op(b) + beta * c). Each launch computes `count` products, whose operands are `stride`
// elements apart (0: all read the same matrix); there is one launch per entry of `launches`.
struct ProductProblem {
  MatrixShape matrix;
  ProductMath math = ProductMath::kF32;
  DType in = DType::kF32;
  DType out = DType::kF32;
  float alpha = 1;
  float beta = 0;  // for Addend::kMatrix; a row is added unscaled
  Addend addend = Addend::kNone;
  bool relu = false;
  int64_t count = 1;
  ProductOffsets stride;
  std::vector<ProductOffsets> launches;
};

// Unimplemented with the reason when no single problem expresses the node. REQUIRES: Gemm, MatMul or BatchMatMul.
absl::StatusOr<ProductProblem> DescribeProduct(const KernelRequest& request, bool tf32);

// The alignment in bytes of `a`, `b` and `y` that holds in every product of every launch: powers of two, at most
// kArgumentAlignment.
ProductOffsets AlignmentOf(const ProductProblem& problem);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PRODUCT_PROBLEM_H_
