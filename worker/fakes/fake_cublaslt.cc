#include "worker/fakes/fake_cublaslt.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "common/status/check.h"
#include "worker/device/cuda/checker/kernel_checks.h"
#include "worker/device/cuda/runtime/runtime_on_host.h"

namespace lockstep::device::cuda {
namespace {

// What a layout says, read back through the library.
struct Matrix {
  uint32_t type = 0;
  uint64_t rows = 0;
  uint64_t columns = 0;
  int64_t leading = 0;
  int32_t count = 0;
  int64_t stride = 0;
  int32_t order = 0;

  explicit Matrix(cublasLtMatrixLayout_t layout) {
    Read(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, type);
    Read(layout, CUBLASLT_MATRIX_LAYOUT_ROWS, rows);
    Read(layout, CUBLASLT_MATRIX_LAYOUT_COLS, columns);
    Read(layout, CUBLASLT_MATRIX_LAYOUT_LD, leading);
    Read(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    Read(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, stride);
    Read(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, order);
    LS_CHECK(order == CUBLASLT_ORDER_COL && leading >= static_cast<int64_t>(rows), "columns that do not overlap");
  }

  float At(const void* base, int64_t batch, uint64_t row, uint64_t column) const {
    const int64_t at = batch * stride + static_cast<int64_t>(column) * leading + static_cast<int64_t>(row);
    if (type == CUDA_R_32F) return checker::Load<float>(base, at);
    LS_CHECK(type == CUDA_R_16BF, "a type that the fake knows");
    return std::bit_cast<float>(uint32_t{checker::Load<uint16_t>(base, at)} << 16);
  }
  void Put(void* base, int64_t batch, uint64_t row, uint64_t column, float value) const {
    const int64_t at = batch * stride + static_cast<int64_t>(column) * leading + static_cast<int64_t>(row);
    if (type == CUDA_R_32F) {
      checker::Store(base, at, value);
      return;
    }
    // To nearest, ties to even; no test has values that are not finite here.
    const auto bits = std::bit_cast<uint32_t>(value);
    checker::Store(base, at, static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16));
  }

 private:
  template <typename T>
  static void Read(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, T& value) {
    size_t written = 0;
    LS_CHECK(cublasLtMatrixLayoutGetAttribute(layout, name, &value, sizeof(value), &written) == CUBLAS_STATUS_SUCCESS &&
                 written == sizeof(value),
             "a layout's attribute");
  }
};

template <typename T>
T Read(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t name) {
  T value = {};
  size_t written = 0;
  LS_CHECK(cublasLtMatmulDescGetAttribute(operation, name, &value, sizeof(value), &written) == CUBLAS_STATUS_SUCCESS &&
               written == sizeof(value),
           "an operation's attribute");
  return value;
}

template <typename T>
T Read(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name) {
  T value = {};
  size_t written = 0;
  LS_CHECK(cublasLtMatmulPreferenceGetAttribute(preference, name, &value, sizeof(value), &written) ==
                   CUBLAS_STATUS_SUCCESS &&
               written == sizeof(value),
           "a preference's attribute");
  return value;
}

// One call of cublasLtMatmul, by value.
struct Product {
  Matrix a, b, c, d;
  const void *a_at, *b_at, *c_at;
  void* d_at;
  float alpha, beta;
  bool turn_a, turn_b, relu;
  const void* bias;  // a row of d's type
  float error;       // FakeOffer::error

  uint64_t terms() const { return turn_a ? a.rows : a.columns; }

  void Run() const {
    for (int32_t batch = 0; batch < d.count; ++batch) {
      for (uint64_t column = 0; column < d.columns; ++column) {
        for (uint64_t row = 0; row < d.rows; ++row) {
          double sum = 0;
          for (uint64_t k = 0; k < terms(); ++k) {
            const float x = turn_a ? a.At(a_at, batch, k, row) : a.At(a_at, batch, row, k);
            const float y = turn_b ? b.At(b_at, batch, column, k) : b.At(b_at, batch, k, column);
            sum += static_cast<double>(x) * y;
          }
          double value = alpha * sum;
          if (beta != 0) value += beta * c.At(c_at, batch, row, column);
          if (bias != nullptr) value += d.At(bias, 0, row, 0);
          if (relu) value = std::max(value, 0.0);
          d.Put(d_at, batch, row, column, static_cast<float>(value) * (1 + error));
        }
      }
    }
  }
};

// By how much the next launch of an algorithm is wrong, as the offer says that it came from.
float ErrorOf(const cublasLtMatmulAlgo_t& algorithm) {
  const FakeCublasLt& fake = FakeCublasLt::Get();
  for (const FakeOffer& offer : fake.offers) {
    if (offer.workspace_bytes != algorithm.data[7] ||
        std::bit_cast<uint64_t>(offer.milliseconds) != algorithm.data[6]) {
      continue;
    }
    return offer.restless ? offer.error * static_cast<float>(fake.launches % 2) : offer.error;
  }
  return 0;
}

// Multiplies the same numbers in the same places, or the library would refuse.
bool Fits(const Product& p) {
  const uint64_t rows = p.turn_a ? p.a.columns : p.a.rows;
  const uint64_t columns = p.turn_b ? p.b.rows : p.b.columns;
  const uint64_t terms = p.turn_b ? p.b.columns : p.b.rows;
  return rows == p.d.rows && columns == p.d.columns && terms == p.terms() && p.a.count == p.d.count &&
         p.b.count == p.d.count && p.c.count == p.d.count && p.c.rows == p.d.rows && p.c.columns == p.d.columns;
}

}  // namespace

FakeCublasLt& FakeCublasLt::Get() {
  static auto* fake = new FakeCublasLt;
  return *fake;
}

}  // namespace lockstep::device::cuda

using lockstep::device::cuda::FakeCublasLt;
using lockstep::device::cuda::FakeOffer;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  static char something = 0;
  *handle = reinterpret_cast<cublasLtHandle_t>(&something);
  return FakeCublasLt::Get().create;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  using lockstep::device::cuda::Read;
  FakeCublasLt& fake = FakeCublasLt::Get();
  fake.asked_workspace = Read<uint64_t>(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  fake.asked_schemes = Read<uint32_t>(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
  fake.asked_alignment_a = Read<uint32_t>(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  fake.asked_alignment_b = Read<uint32_t>(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  *count = std::min(wanted, static_cast<int>(fake.offers.size()));
  for (int i = 0; i < *count; ++i) {
    const FakeOffer& offer = fake.offers[static_cast<size_t>(i)];
    results[i] = {};
    results[i].state = offer.state;
    results[i].workspaceSize = offer.workspace_bytes;
    cublasLtMatmulAlgo_t* algorithm = &results[i].algo;
    LS_CHECK(cublasLtMatmulAlgoConfigSetAttribute(algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &offer.scheme,
                                                  sizeof(offer.scheme)) == CUBLAS_STATUS_SUCCESS &&
                 cublasLtMatmulAlgoConfigSetAttribute(algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &offer.splits,
                                                      sizeof(offer.splits)) == CUBLAS_STATUS_SUCCESS,
             "an algorithm's attribute");
    // What the check and the product find again.
    algorithm->data[6] = std::bit_cast<uint64_t>(offer.milliseconds);
    algorithm->data[7] = offer.workspace_bytes;
  }
  return fake.heuristics;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulHeuristicResult_t* result) {
  result->workspaceSize = algorithm->data[7];
  result->state = FakeCublasLt::Get().check;
  return FakeCublasLt::Get().check;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              size_t workspace_bytes, cudaStream_t stream) {
  using lockstep::device::cuda::Matrix;
  using lockstep::device::cuda::Read;
  const auto epilogue = Read<uint32_t>(operation, CUBLASLT_MATMUL_DESC_EPILOGUE);
  const auto* bias = Read<const void*>(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  const lockstep::device::cuda::Product product = {
      .a = Matrix(a_layout),
      .b = Matrix(b_layout),
      .c = Matrix(c_layout),
      .d = Matrix(d_layout),
      .a_at = a,
      .b_at = b,
      .c_at = c,
      .d_at = d,
      .alpha = *static_cast<const float*>(alpha),
      .beta = *static_cast<const float*>(beta),
      .turn_a = Read<int32_t>(operation, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_T,
      .turn_b = Read<int32_t>(operation, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T,
      .relu = (epilogue & CUBLASLT_EPILOGUE_RELU) != 0,
      .bias = (epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 ? bias : nullptr,
      .error = lockstep::device::cuda::ErrorOf(*algorithm),
  };
  if (!Fits(product) || workspace_bytes < algorithm->data[7] || (workspace_bytes > 0 && workspace == nullptr)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  ++FakeCublasLt::Get().launches;
  const auto milliseconds = std::bit_cast<double>(algorithm->data[6]);
  const bool queued =
      lockstep::device::cuda::Enqueue(
          stream,
          [product] { lockstep::device::cuda::checker::RunLibrary("a product of cuBLASLt", [&] { product.Run(); }); },
          milliseconds)
          .ok();
  return queued ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
