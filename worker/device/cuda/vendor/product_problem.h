// A matrix product as libraries take it, from what a plan asks: one shape, types, what is added, and how the matrices
// of a batch follow each other. Pure, so that every reason against a node is known without a GPU.
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

// What addresses of plans and of the state are multiples of.
inline constexpr int64_t kArgumentAlignment = 64;

// What the factors are rounded to before they are multiplied; sums are float32 always.
enum class ProductMath : uint8_t { kF32, kTf32, kBf16 };

// "f32", "tf32", "bf16".
std::string ProductMathName(ProductMath math);

// What is added to the product.
enum class Addend : uint8_t { kNone, kRow, kMatrix };

// Where the operands of one launch begin, in elements.
struct ProductOffsets {
  int64_t a = 0;
  int64_t b = 0;
  int64_t y = 0;
  friend bool operator==(const ProductOffsets&, const ProductOffsets&) = default;
};

// y = relu?(alpha * op(a) op(b) + beta * c): `count` products per launch, whose operands follow each other by the
// strides (in elements; 0: all of them read the same matrix), and a launch for each of the offsets.
struct ProductProblem {
  MatrixShape matrix;
  ProductMath math = ProductMath::kF32;
  DType in = DType::kF32;
  DType out = DType::kF32;
  float alpha = 1;
  float beta = 0;  // of Addend::kMatrix; a row is added as it is
  Addend addend = Addend::kNone;
  bool relu = false;
  int64_t count = 1;
  ProductOffsets stride;
  std::vector<ProductOffsets> launches;
};

// Unimplemented with the reason where one such problem does not express the node. REQUIRES: Gemm, MatMul or
// BatchMatMul.
absl::StatusOr<ProductProblem> DescribeProduct(const KernelRequest& request, bool tf32);

// The bytes that the addresses of `a`, `b` and `y` are multiples of in every product of every launch: powers of two, no
// more than kArgumentAlignment.
ProductOffsets AlignmentOf(const ProductProblem& problem);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_PRODUCT_PROBLEM_H_
