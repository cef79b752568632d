#include "worker/device/cuda/vendor/product_problem.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::device::cuda {
namespace {

using Catch::Contains;

// A request with its node.
struct AskedProduct {
  Node node;
  KernelRequest request;
};

AskedProduct AskProduct(OpType op, OpAttributes attributes, std::vector<Shape> inputs, Shape output) {
  AskedProduct asked;
  asked.node.op = op;
  asked.node.attributes = std::move(attributes);
  for (Shape& shape : inputs) asked.request.inputs.push_back({.shape = std::move(shape)});
  asked.request.outputs.push_back({.shape = std::move(output)});
  return asked;
}

absl::StatusOr<ProductProblem> DescribeAsked(AskedProduct asked, bool tf32 = false) {
  asked.request.node = &asked.node;
  return DescribeProduct(asked.request, tf32);
}

ProductProblem Described(AskedProduct asked) {
  const auto problem = DescribeAsked(std::move(asked));
  INFO(problem.status());
  REQUIRE(problem.ok());
  return *problem;
}

std::string ProductReason(AskedProduct asked) {
  const absl::Status status = DescribeAsked(std::move(asked)).status();
  CHECK(absl::IsUnimplemented(status));
  return std::string(status.message());
}

// The matrices of `a` and `b` that make each matrix of `y`.
std::set<std::vector<int64_t>> Triples(const ProductProblem& p) {
  std::set<std::vector<int64_t>> triples;
  const MatrixShape& s = p.matrix;
  for (const ProductOffsets& at : p.launches) {
    for (int64_t i = 0; i < p.count; ++i) {
      triples.insert({(at.y + i * p.stride.y) / (s.m * s.n), (at.a + i * p.stride.a) / (s.m * s.k),
                      (at.b + i * p.stride.b) / (s.k * s.n)});
    }
  }
  return triples;
}

}  // namespace

TEST_CASE("product problem: a row with beta 1 is a bias, a whole matrix is added with beta", "[cuda]") {
  const GemmAttributes attributes{.alpha = 0.5, .beta = 1, .trans_b = true};
  const ProductProblem row = Described(AskProduct(OpType::kGemm, attributes, {{3, 4}, {5, 4}, {5}}, {3, 5}));
  const GemmAttributes halved{.alpha = 1, .beta = 0.25};
  const ProductProblem whole = Described(AskProduct(OpType::kGemm, halved, {{3, 4}, {4, 5}, {3, 5}}, {3, 5}));
  const GemmAttributes ignored{.alpha = 1, .beta = 0};
  const ProductProblem without = Described(AskProduct(OpType::kGemm, ignored, {{3, 4}, {4, 5}, {3, 1}}, {3, 5}));

  CHECK(row.addend == Addend::kRow);
  CHECK(row.alpha == 0.5f);
  CHECK((row.matrix.m == 3 && row.matrix.n == 5 && row.matrix.k == 4 && row.matrix.trans_b && !row.matrix.trans_a));
  CHECK(whole.addend == Addend::kMatrix);
  CHECK(whole.beta == 0.25f);
  CHECK(without.addend == Addend::kNone);
}

TEST_CASE("product problem: rows of a stack that meet one matrix are one product", "[cuda]") {
  const ProductProblem p = Described(AskProduct(OpType::kMatMul, NoAttributes{}, {{2, 3, 4, 5}, {5, 6}}, {2, 3, 4, 6}));

  CHECK(p.matrix.m == 24);
  CHECK(p.count == 1);
  CHECK(p.launches.size() == 1);
}

TEST_CASE("product problem: operands of rank 1 are a row and a column", "[cuda]") {
  const ProductProblem p = Described(AskProduct(OpType::kMatMul, NoAttributes{}, {{7}, {7}}, {}));

  CHECK((p.matrix.m == 1 && p.matrix.n == 1 && p.matrix.k == 7));
}

TEST_CASE("product problem: every matrix of a broadcast batch is made from its own factors", "[cuda]") {
  const std::vector<std::pair<Shape, Shape>> batches = {
      {{4}, {4}}, {{2, 3}, {2, 3}}, {{2, 1}, {1, 3}}, {{3}, {2, 3}},       {{2, 1, 4}, {2, 3, 4}}, {{1}, {6}},
      {{6}, {1}}, {{1, 1}, {1, 1}}, {{}, {2, 2}},     {{2, 1, 3}, {4, 1}}, {{5, 1, 2}, {1, 3, 1}}};
  for (const auto& [a_batch, b_batch] : batches) {
    for (const bool trans_a : {false, true}) {
      Shape a = a_batch, b = b_batch;
      a.insert(a.end(), {3, 2});
      if (trans_a) std::swap(a[a.size() - 1], a[a.size() - 2]);
      b.insert(b.end(), {2, 5});
      const BatchMatMulAttributes attributes{.trans_a = trans_a};
      const BatchedMatrixShape shape = BatchMatMulShape(attributes, a, b);
      Shape y = shape.batch;
      y.insert(y.end(), {3, 5});

      const ProductProblem p = Described(AskProduct(OpType::kBatchMatMul, attributes, {a, b}, y));

      if (p.matrix.m != 3) continue;  // one tall product, see above
      std::set<std::vector<int64_t>> expected;
      for (int64_t i = 0; i < shape.count(); ++i) expected.insert({i, shape.a_index(i), shape.b_index(i)});
      CHECK(Triples(p) == expected);
    }
  }
}

TEST_CASE("product problem: what no single launch or few launches express has a reason", "[cuda]") {
  const GemmAttributes doubled{.alpha = 1, .beta = 2};
  const GemmAttributes plain;
  const BatchMatMulAttributes batch;
  AskedProduct half = AskProduct(OpType::kGemm, plain, {{3, 4}, {4, 5}}, {3, 5});
  half.request.inputs[0].dtype = half.request.inputs[1].dtype = DType::kF16;
  AskedProduct mixed = AskProduct(OpType::kGemm, plain, {{3, 4}, {4, 5}}, {3, 5});
  mixed.request.inputs[0].dtype = DType::kBF16;
  AskedProduct blocked = AskProduct(OpType::kGemm, plain, {{3, 4}, {4, 5}}, {3, 5});
  blocked.request.inputs[0].layout = Layout{.encoding = std::string(1, 'x')};

  CHECK_THAT(ProductReason(AskProduct(OpType::kGemm, doubled, {{3, 4}, {4, 5}, {5}}, {3, 5})),
             Contains("one row with beta 1"));
  CHECK_THAT(ProductReason(AskProduct(OpType::kGemm, plain, {{3, 4}, {4, 5}, {3, 1}}, {3, 5})),
             Contains("a whole matrix"));
  CHECK_THAT(ProductReason(AskProduct(OpType::kGemm, plain, {{3, 0}, {0, 5}}, {3, 5})), Contains("empty"));
  CHECK_THAT(ProductReason(AskProduct(OpType::kRelu, NoAttributes{}, {{3, 4}, {4, 5}}, {3, 5})),
             Contains("ops other than"));
  CHECK_THAT(ProductReason(std::move(half)), Contains("BF16 factors"));
  CHECK_THAT(ProductReason(std::move(mixed)), Contains("BF16 factors"));
  CHECK_THAT(ProductReason(std::move(blocked)), Contains("row-major"));
  CHECK_THAT(ProductReason(AskProduct(OpType::kBatchMatMul, batch, {{65, 1, 2, 2}, {1, 65, 2, 2}}, {65, 65, 2, 2})),
             Contains("more than 64 launches"));
}

TEST_CASE("product problem: alignment is that of the least aligned matrix", "[cuda]") {
  const BatchMatMulAttributes batch;
  const ProductProblem odd = Described(AskProduct(OpType::kBatchMatMul, batch, {{4, 3, 3}, {4, 3, 8}}, {4, 3, 8}));
  const ProductProblem nested =
      Described(AskProduct(OpType::kBatchMatMul, batch, {{2, 1, 4, 4}, {2, 3, 4, 2}}, {2, 3, 4, 2}));

  CHECK(AlignmentOf(odd) == ProductOffsets{4, 32, 32});
  CHECK(AlignmentOf(nested) == ProductOffsets{64, 32, 32});
}

TEST_CASE("product problem: factors of float32 are rounded to tf32 only where that is asked for", "[cuda]") {
  const AskedProduct f32 = AskProduct(OpType::kMatMul, NoAttributes{}, {{3, 4}, {4, 5}}, {3, 5});
  AskedProduct bf16 = f32;
  for (Operand& input : bf16.request.inputs) input.dtype = DType::kBF16;

  CHECK(DescribeAsked(f32)->math == ProductMath::kF32);
  CHECK(DescribeAsked(f32, true)->math == ProductMath::kTf32);
  CHECK(DescribeAsked(bf16, true)->math == ProductMath::kBf16);
  CHECK(DescribeAsked(bf16)->out == DType::kF32);
}

}  // namespace lockstep::device::cuda
