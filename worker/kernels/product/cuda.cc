// Gemm, MatMul and BatchMatMul over tiles, with a ReLU behind them where a plan fuses one.
#include <optional>

#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/matrix_factor.h"
#include "worker/kernels/cuda/tile_launch.h"
#include "worker/kernels/product/product.h"

namespace lockstep::device::cuda {
namespace {

// The products of a node: sizes, and how the operands' matrices follow each other.
struct Products {
  TilePlan plan;
  MatrixShape matrix;
  BatchOffsets a;
  BatchOffsets b;
};

// The strides by which an operand follows the dimensions of the whole batch, in matrices of `size` elements.
std::vector<int64_t> BatchStrides(const Shape& operand, size_t rank, int64_t size) {
  std::vector<int64_t> strides(rank, 0);
  for (size_t i = operand.size(); i-- > 0; size *= operand[i]) {
    if (operand[i] > 1) strides[i + rank - operand.size()] = size;
  }
  return strides;
}

// Appends a run, or lengthens the last one where both operands go on in the same way. False: too many runs.
bool AddRun(int64_t extent, int64_t a, int64_t b, Products* products, int64_t* last_extent) {
  if (extent == 1) return true;
  int& runs = products->a.runs;
  if (runs > 0 && a == products->a.strides[runs - 1] * *last_extent &&
      b == products->b.strides[runs - 1] * *last_extent) {
    extent *= *last_extent;
    --runs;
    a = products->a.strides[runs];
    b = products->b.strides[runs];
  }
  if (runs == BatchOffsets::kMostRuns || extent > FastDivide::kMost) return false;
  products->a.extents[runs] = products->b.extents[runs] = FastDivide(extent);
  products->a.strides[runs] = a;
  products->b.strides[runs] = b;
  products->b.runs = ++runs;
  *last_extent = extent;
  return true;
}

// Nothing where a number does not fit.
std::optional<Products> Describe(const BatchedMatrixShape& shape) {
  Products products;
  MatrixShape& matrix = products.matrix = shape.matrix;
  int64_t count = shape.count();
  if (count > 0) {
    const size_t rank = shape.batch.size();
    const std::vector<int64_t> a = BatchStrides(shape.a_batch, rank, matrix.m * matrix.k);
    const std::vector<int64_t> b = BatchStrides(shape.b_batch, rank, matrix.k * matrix.n);
    int64_t last_extent = 0;
    for (size_t i = rank; i-- > 0;) {
      if (!AddRun(shape.batch[i], a[i], b[i], &products, &last_extent)) return std::nullopt;
    }
  }
  // Rows of `a` that all meet one `b` are one taller matrix.
  if (products.a.runs == 1 && products.b.strides[0] == 0 && !matrix.trans_a &&
      products.a.strides[0] == matrix.m * matrix.k) {
    matrix.m *= count;
    count = 1;
    products.a.runs = products.b.runs = 0;
  }
  products.plan = TilePlan::For(matrix.m, matrix.n, matrix.k, count);
  if (count > 0 && !products.plan.fits()) return std::nullopt;
  return products;
}

std::optional<Products> Describe(OpType op, const OpAttributes& attributes, const Shape& a, const Shape& b) {
  switch (op) {
    case OpType::kGemm:
      return Describe(BatchedMatrixShape{GemmShape(*std::get_if<GemmAttributes>(&attributes), a, b), {}, {}, {}});
    case OpType::kMatMul:
      return Describe(MatMulShape(a, b));
    default:
      return Describe(BatchMatMulShape(*std::get_if<BatchMatMulAttributes>(&attributes), a, b));
  }
}

void AddC(const DeviceCall& call, MatrixResult* result) {
  const auto& attributes = call.attrs<GemmAttributes>();
  result->alpha = static_cast<float>(attributes.alpha);
  result->beta = static_cast<float>(attributes.beta);
  result->c = call.in<float>(2);
  if (result->c == nullptr) return;
  const Shape& c = call.in_shape(2);
  result->c_column = !c.empty() && c.back() > 1 ? 1 : 0;
  result->c_row = c.size() == 2 && c[0] > 1 ? c[1] : 0;
}

template <bool kRelu>
absl::Status Product(const DeviceCall& call, StreamHandle stream) {
  const Products products = *Describe(call.op, call.attributes, call.in_shape(0), call.in_shape(1));
  const auto& [m, n, k, trans_a, trans_b] = products.matrix;
  MatrixResult result{.y = call.out<float>(0), .m = static_cast<int>(m), .n = static_cast<int>(n), .relu = kRelu};
  if (call.op == OpType::kGemm) AddC(call, &result);
  result.packed = RowsArePackable(result.y, n);
  const auto launch = [&](const auto& a, const auto& b) {
    return LaunchProduct(stream, products.plan, a, b, result, call.workspace);
  };
  const auto with_a = [&](const auto& a) {
    const float* b = call.in<float>(1);
    return products.matrix.trans_b
               ? launch(a, MatrixFactor<true>(b, products.matrix.k, products.matrix.n, products.b))
               : launch(a, MatrixFactor<false>(b, products.matrix.n, products.matrix.n, products.b));
  };
  const float* a = call.in<float>(0);
  return trans_a ? with_a(MatrixFactor<false>(a, m, m, products.a)) : with_a(MatrixFactor<true>(a, k, m, products.a));
}

}  // namespace

OwnFunction OwnProduct(const KernelRequest& request) {
  switch (request.node->op) {
    case OpType::kGemm:
    case OpType::kMatMul:
    case OpType::kBatchMatMul:
      break;
    default:
      return {};
  }
  for (const Operand& operand : request.inputs) {
    if (operand.present && operand.dtype != DType::kF32) return {.refusal = kOtherType};
  }
  if (request.outputs[0].dtype != DType::kF32) return {.refusal = kOtherType};
  const std::optional<Products> products =
      Describe(request.node->op, request.node->attributes, request.inputs[0].shape, request.inputs[1].shape);
  if (!products.has_value()) return {.refusal = "serves fewer batch dimensions, and less than 2^30 rows and columns"};
  const bool relu = request.epilogue == Epilogue::kRelu;
  return {relu ? &Product<true> : &Product<false>, "tile", products->plan.workspace_bytes(), request.epilogue};
}

}  // namespace lockstep::device::cuda
