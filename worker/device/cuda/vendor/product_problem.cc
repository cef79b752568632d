#include "worker/device/cuda/vendor/product_problem.h"

#include <algorithm>
#include <numeric>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::device::cuda {
namespace {

// More launches for one node would cost more than the product.
constexpr int64_t kMostLaunches = 64;

// A run of batch dimensions over which each operand advances by one stride, in matrices.
struct Run {
  int64_t count = 1;
  int64_t a = 0;
  int64_t b = 0;
  int64_t y = 0;
};

// The strides, in matrices, by which an operand follows the dimensions of the whole batch.
std::vector<int64_t> BatchStrides(const Shape& operand, size_t rank) {
  std::vector<int64_t> strides(rank, 0);
  int64_t stride = 1;
  for (size_t i = operand.size(); i-- > 0;) {
    if (operand[i] > 1) strides[i + rank - operand.size()] = stride;
    stride *= operand[i];
  }
  return strides;
}

// The batch as the fewest runs, outermost first.
std::vector<Run> RunsOf(const BatchedMatrixShape& shape) {
  const size_t rank = shape.batch.size();
  const std::vector<int64_t> a = BatchStrides(shape.a_batch, rank);
  const std::vector<int64_t> b = BatchStrides(shape.b_batch, rank);
  std::vector<Run> runs;
  int64_t y = 1;
  for (size_t i = rank; i-- > 0;) {
    const Run next = {shape.batch[i], a[i], b[i], y};
    y *= shape.batch[i];
    if (next.count == 1) continue;
    if (!runs.empty() && next.a == runs.back().a * runs.back().count && next.b == runs.back().b * runs.back().count) {
      runs.back().count *= next.count;
    } else {
      runs.push_back(next);
    }
  }
  std::reverse(runs.begin(), runs.end());
  return runs;
}

bool IsRow(const Shape& c, int64_t n) {
  return (c.size() == 1 && c[0] == n) || (c.size() == 2 && c[0] == 1 && c[1] == n);
}

absl::Status DescribeGemm(const KernelRequest& request, ProductProblem& problem) {
  const auto& attributes = *std::get_if<GemmAttributes>(&request.node->attributes);
  problem.matrix = GemmShape(attributes, request.inputs[0].shape, request.inputs[1].shape);
  problem.alpha = static_cast<float>(attributes.alpha);
  problem.launches = {{}};
  if (request.inputs.size() < 3 || !request.inputs[2].present || attributes.beta == 0) return absl::OkStatus();
  const Operand& c = request.inputs[2];
  if (c.dtype != problem.out) return absl::UnimplementedError("C of another element type than Y");
  if (attributes.beta == 1 && IsRow(c.shape, problem.matrix.n)) {
    problem.addend = Addend::kRow;
    return absl::OkStatus();
  }
  if (c.shape != Shape{problem.matrix.m, problem.matrix.n}) {
    return absl::UnimplementedError("C other than a whole matrix, or one row with beta 1");
  }
  problem.addend = Addend::kMatrix;
  problem.beta = static_cast<float>(attributes.beta);
  return absl::OkStatus();
}

absl::Status DescribeBatch(const BatchedMatrixShape& shape, ProductProblem& problem) {
  problem.matrix = shape.matrix;
  const int64_t a = shape.matrix.m * shape.matrix.k, b = shape.matrix.k * shape.matrix.n;
  const int64_t y = shape.matrix.m * shape.matrix.n;
  std::vector<Run> runs = RunsOf(shape);
  // Rows of `a` that all meet one `b` are one taller matrix.
  if (runs.size() == 1 && runs[0].a == 1 && runs[0].b == 0 && !shape.matrix.trans_a) {
    problem.matrix.m *= runs[0].count;
    runs.clear();
  }
  if (!runs.empty()) {
    const auto longest = std::max_element(runs.rbegin(), runs.rend(),
                                          [](const Run& left, const Run& right) { return left.count < right.count; })
                             .base() -
                         1;
    problem.count = longest->count;
    problem.stride = {longest->a * a, longest->b * b, longest->y * y};
    runs.erase(longest);
  }
  problem.launches = {{}};
  for (const Run& run : runs) {
    if (static_cast<int64_t>(problem.launches.size()) * run.count > kMostLaunches) {
      return absl::UnimplementedError(
          absl::StrCat("a batch whose broadcasting takes more than ", kMostLaunches, " launches"));
    }
    std::vector<ProductOffsets> all;
    for (const ProductOffsets& from : problem.launches) {
      for (int64_t i = 0; i < run.count; ++i) {
        all.push_back({from.a + i * run.a * a, from.b + i * run.b * b, from.y + i * run.y * y});
      }
    }
    problem.launches = std::move(all);
  }
  return absl::OkStatus();
}

absl::Status DescribeTypes(const KernelRequest& request, bool tf32, ProductProblem& problem) {
  problem.in = request.inputs[0].dtype;
  problem.out = request.outputs[0].dtype;
  const bool bf16 = problem.in == DType::kBF16;
  if (request.inputs[1].dtype != problem.in || (problem.in != DType::kF32 && !bf16) ||
      (problem.out != DType::kF32 && problem.out != problem.in)) {
    return absl::UnimplementedError(
        "element types other than F32 throughout, or BF16 factors with a result of BF16 or F32");
  }
  problem.math = bf16 ? ProductMath::kBf16 : tf32 ? ProductMath::kTf32 : ProductMath::kF32;
  return absl::OkStatus();
}

absl::Status CheckOperands(const KernelRequest& request) {
  for (const auto* operands : {&request.inputs, &request.outputs}) {
    for (const Operand& operand : *operands) {
      if (!operand.present) continue;
      if (NumElements(operand.shape) == 0) return absl::UnimplementedError("empty operands");
      if (!operand.layout.row_major()) return absl::UnimplementedError("layouts other than row-major");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string ProductMathName(ProductMath math) {
  switch (math) {
    case ProductMath::kF32:
      return "f32";
    case ProductMath::kTf32:
      return "tf32";
    case ProductMath::kBf16:
      return "bf16";
  }
  return "";
}

absl::StatusOr<ProductProblem> DescribeProduct(const KernelRequest& request, bool tf32) {
  LS_RETURN_IF_ERROR(CheckOperands(request));
  ProductProblem problem;
  LS_RETURN_IF_ERROR(DescribeTypes(request, tf32, problem));
  problem.relu = request.epilogue == Epilogue::kRelu;
  const Shape& a = request.inputs[0].shape;
  const Shape& b = request.inputs[1].shape;
  switch (request.node->op) {
    case OpType::kGemm:
      LS_RETURN_IF_ERROR(DescribeGemm(request, problem));
      break;
    case OpType::kMatMul:
      LS_RETURN_IF_ERROR(DescribeBatch(MatMulShape(a, b), problem));
      break;
    case OpType::kBatchMatMul: {
      const auto& attributes = *std::get_if<BatchMatMulAttributes>(&request.node->attributes);
      LS_RETURN_IF_ERROR(DescribeBatch(BatchMatMulShape(attributes, a, b), problem));
      break;
    }
    default:
      return absl::UnimplementedError("ops other than Gemm, MatMul and BatchMatMul");
  }
  return problem;
}

ProductOffsets AlignmentOf(const ProductProblem& problem) {
  const int64_t in = DTypeSize(problem.in), out = DTypeSize(problem.out);
  ProductOffsets alignment = {kArgumentAlignment, kArgumentAlignment, kArgumentAlignment};
  const auto fold = [&](const ProductOffsets& at) {
    alignment.a = std::gcd(alignment.a, at.a * in);
    alignment.b = std::gcd(alignment.b, at.b * in);
    alignment.y = std::gcd(alignment.y, at.y * out);
  };
  if (problem.count > 1) fold(problem.stride);
  for (const ProductOffsets& at : problem.launches) fold(at);
  return alignment;
}

}  // namespace lockstep::device::cuda
