#include "worker/kernels/product/product.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

// One product of matrices that may be stored transposed: y[i, j] = sum over p of op(a)[i, p] * op(b)[p, j].
template <typename T>
double Dot(const T* a, const T* b, const MatrixShape& s, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t p = 0; p < s.k; ++p) {
    const double x = a[s.trans_a ? p * s.m + i : i * s.k + p];
    const double y = b[s.trans_b ? j * s.k + p : p * s.n + j];
    sum += x * y;
  }
  return sum;
}

template <typename T>
void Gemm(const HostCall& call) {
  const auto& attributes = call.attrs<GemmAttributes>();
  const MatrixShape s = GemmShape(attributes, call.in_shape(0), call.in_shape(1));
  const T* c = call.in<T>(2);
  T* y = call.out<T>(0);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double value = attributes.alpha * Dot(call.in<T>(0), call.in<T>(1), s, i, j);
      if (c != nullptr) value += attributes.beta * c[BroadcastIndex(i * s.n + j, {s.m, s.n}, call.in_shape(2))];
      y[i * s.n + j] = static_cast<T>(value);
    }
  }
}

template <typename T>
void Product(const HostCall& call, const BatchedMatrixShape& s) {
  T* y = call.out<T>(0);
  for (int64_t batch = 0; batch < s.count(); ++batch) {
    const T* a = call.in<T>(0) + s.a_index(batch) * s.matrix.m * s.matrix.k;
    const T* b = call.in<T>(1) + s.b_index(batch) * s.matrix.k * s.matrix.n;
    for (int64_t i = 0; i < s.matrix.m; ++i) {
      for (int64_t j = 0; j < s.matrix.n; ++j) {
        y[(batch * s.matrix.m + i) * s.matrix.n + j] = static_cast<T>(Dot(a, b, s.matrix, i, j));
      }
    }
  }
}

template <typename T>
void MatMul(const HostCall& call) {
  Product<T>(call, MatMulShape(call.in_shape(0), call.in_shape(1)));
}

template <typename T>
void BatchMatMul(const HostCall& call) {
  Product<T>(call, BatchMatMulShape(call.attrs<BatchMatMulAttributes>(), call.in_shape(0), call.in_shape(1)));
}

}  // namespace

template <typename T>
HostFunction MatrixFunction(OpType type) {
  switch (type) {
    case OpType::kGemm:
      return &Gemm<T>;
    case OpType::kMatMul:
      return &MatMul<T>;
    case OpType::kBatchMatMul:
      return &BatchMatMul<T>;
    default:
      return nullptr;
  }
}

template HostFunction MatrixFunction<float>(OpType);
template HostFunction MatrixFunction<double>(OpType);

}  // namespace lockstep::device::reference
