#include "common/graph/ops/gemm.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseGemm(const RawAttributes& raw) {
  GemmAttributes gemm;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Float("alpha", &gemm.alpha)
                         .Float("beta", &gemm.beta)
                         .Bool("transA", &gemm.trans_a)
                         .Bool("transB", &gemm.trans_b)
                         .Finish());
  return OpAttributes(gemm);
}

RawAttributes FormatGemm(const OpAttributes& attributes) {
  const auto& gemm = std::get<GemmAttributes>(attributes);
  return {
      {"alpha", gemm.alpha}, {"beta", gemm.beta}, {"transA", int64_t{gemm.trans_a}}, {"transB", int64_t{gemm.trans_b}}};
}

absl::StatusOr<OpAttributes> ParseBatchMatMul(const RawAttributes& raw) {
  BatchMatMulAttributes product;
  LS_RETURN_IF_ERROR(AttributeReader(raw).Bool("transA", &product.trans_a).Bool("transB", &product.trans_b).Finish());
  return OpAttributes(product);
}

RawAttributes FormatBatchMatMul(const OpAttributes& attributes) {
  const auto& product = std::get<BatchMatMulAttributes>(attributes);
  return {{"transA", int64_t{product.trans_a}}, {"transB", int64_t{product.trans_b}}};
}

absl::Status CheckOperands(InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "A"));
  if (inputs[1]->dtype != inputs[0]->dtype) {
    return absl::InvalidArgumentError(absl::StrCat("A is ", DTypeName(inputs[0]->dtype), " and B is ",
                                                   DTypeName(inputs[1]->dtype), "; both need the same type"));
  }
  return absl::OkStatus();
}

// The product of matrices in the last two dimensions; the others broadcast. REQUIRES: ranks of at least 2.
absl::StatusOr<Shape> ProductShape(const Shape& a, const Shape& b, bool trans_a, bool trans_b) {
  const size_t ra = a.size();
  const size_t rb = b.size();
  const int64_t m = a[ra - (trans_a ? 1 : 2)];
  const int64_t k = a[ra - (trans_a ? 2 : 1)];
  const int64_t kb = b[rb - (trans_b ? 1 : 2)];
  const int64_t n = b[rb - (trans_b ? 2 : 1)];
  if (k != kb) {
    return absl::InvalidArgumentError(absl::StrCat("A ", ShapeString(a), trans_a ? " (transposed)" : "", " has ", k,
                                                   " columns and B ", ShapeString(b), trans_b ? " (transposed)" : "",
                                                   " has ", kb, " rows"));
  }
  LS_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2}));
  shape.push_back(m);
  shape.push_back(n);
  return shape;
}

absl::StatusOr<std::vector<ValueInfo>> InferGemm(const Node& node, InputInfos inputs) {
  const auto& gemm = std::get<GemmAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckOperands(inputs));
  if (inputs[0]->shape.size() != 2 || inputs[1]->shape.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat("A ", ShapeString(inputs[0]->shape), " and B ",
                                                   ShapeString(inputs[1]->shape), " have to be matrices"));
  }
  LS_ASSIGN_OR_RETURN(Shape shape, ProductShape(inputs[0]->shape, inputs[1]->shape, gemm.trans_a, gemm.trans_b));
  if (inputs[2] != nullptr) {
    LS_ASSIGN_OR_RETURN(const Shape broadcast, BroadcastShapes(inputs[2]->shape, shape));
    if (broadcast != shape || inputs[2]->dtype != inputs[0]->dtype) {
      return absl::InvalidArgumentError(absl::StrCat("C is ", DTypeName(inputs[2]->dtype), " ",
                                                     ShapeString(inputs[2]->shape), " and does not broadcast to ",
                                                     DTypeName(inputs[0]->dtype), " ", ShapeString(shape)));
    }
  }
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferMatMul(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckOperands(inputs));
  Shape a = inputs[0]->shape;
  Shape b = inputs[1]->shape;
  if (a.empty() || b.empty()) return absl::InvalidArgumentError("a scalar cannot be an operand");
  const bool row = a.size() == 1;
  const bool column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  LS_ASSIGN_OR_RETURN(Shape shape, ProductShape(a, b, false, false));
  if (column) shape.pop_back();
  if (row) shape.erase(shape.end() - (column ? 1 : 2));
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferBatchMatMul(const Node& node, InputInfos inputs) {
  const auto& product = std::get<BatchMatMulAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckOperands(inputs));
  if (inputs[0]->shape.size() < 2 || inputs[1]->shape.size() < 2) {
    return absl::InvalidArgumentError("operands have a rank of at least 2");
  }
  LS_ASSIGN_OR_RETURN(Shape shape, ProductShape(inputs[0]->shape, inputs[1]->shape, product.trans_a, product.trans_b));
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

// Y = alpha * op(A) op(B) + beta * C: dA and dB are products again, with the operands in the order that needs no
// transposed result. dB first: B mostly is a weight, and then nobody needs A any more when dA takes its room.
absl::Status GemmGradient(GradientBuilder& b) {
  const auto& gemm = std::get<GemmAttributes>(b.node().attributes);
  const std::string& dy = b.OutputGradient(0);
  if (b.Needs(1)) {
    const GemmAttributes plain{gemm.alpha, 0.0, !gemm.trans_a, false};
    const GemmAttributes transposed{gemm.alpha, 0.0, true, gemm.trans_a};
    b.SetInputGradient(1, gemm.trans_b ? b.Emit("dB", OpType::kGemm, {dy, b.Input(0)}, transposed)
                                       : b.Emit("dB", OpType::kGemm, {b.Input(0), dy}, plain));
  }
  if (b.Needs(0)) {
    const GemmAttributes plain{gemm.alpha, 0.0, false, !gemm.trans_b};
    const GemmAttributes transposed{gemm.alpha, 0.0, gemm.trans_b, true};
    b.SetInputGradient(0, gemm.trans_a ? b.Emit("dA", OpType::kGemm, {b.Input(1), dy}, transposed)
                                       : b.Emit("dA", OpType::kGemm, {dy, b.Input(1)}, plain));
  }
  if (b.Needs(2)) {
    std::string dc = b.ReduceTo("dC", dy, b.InputInfo(2).shape);
    if (gemm.beta != 1.0) dc = b.Emit("dC.beta", OpType::kScale, {dc}, ScaleAttributes{gemm.beta});
    b.SetInputGradient(2, dc);
  }
  return absl::OkStatus();
}

// Gradients of op(A) op(B) over matrices with broadcast leading dimensions, for operands of rank 2 and more.
void ProductGradient(GradientBuilder& b, const std::string& dy, const std::string& x, const std::string& y,
                     bool trans_a, bool trans_b) {
  if (b.Needs(1)) {
    const Shape shape = b.Info(y).shape;
    const std::string full =
        trans_b ? b.Emit("dB.full", OpType::kBatchMatMul, {dy, x}, BatchMatMulAttributes{true, trans_a})
                : b.Emit("dB.full", OpType::kBatchMatMul, {x, dy}, BatchMatMulAttributes{!trans_a, false});
    b.SetInputGradient(1, b.ReshapeTo("dB", b.ReduceTo("dB.reduced", full, shape), b.InputInfo(1).shape));
  }
  if (b.Needs(0)) {
    const Shape shape = b.Info(x).shape;
    const std::string full =
        trans_a ? b.Emit("dA.full", OpType::kBatchMatMul, {y, dy}, BatchMatMulAttributes{trans_b, true})
                : b.Emit("dA.full", OpType::kBatchMatMul, {dy, y}, BatchMatMulAttributes{false, !trans_b});
    b.SetInputGradient(0, b.ReshapeTo("dA", b.ReduceTo("dA.reduced", full, shape), b.InputInfo(0).shape));
  }
}

absl::Status BatchMatMulGradient(GradientBuilder& b) {
  const auto& product = std::get<BatchMatMulAttributes>(b.node().attributes);
  ProductGradient(b, b.OutputGradient(0), b.Input(0), b.Input(1), product.trans_a, product.trans_b);
  return absl::OkStatus();
}

absl::Status MatMulGradient(GradientBuilder& b) {
  Shape a = b.InputInfo(0).shape;
  Shape w = b.InputInfo(1).shape;
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (w.size() == 1) w.push_back(1);
  LS_ASSIGN_OR_RETURN(Shape y, ProductShape(a, w, false, false));
  // One weight for every matrix of A: their rows are stacked, which saves a sum over the leading dimensions.
  if (w.size() == 2 && a.size() > 2) {
    const int64_t columns = a.back();
    const int64_t rows = NumElements(absl::MakeConstSpan(a).first(a.size() - 1));
    a = {rows, columns};
    y = {rows, w[1]};
  }
  const std::string x = b.ReshapeTo("A", b.Input(0), a);
  const std::string m = b.ReshapeTo("B", b.Input(1), w);
  ProductGradient(b, b.ReshapeTo("dY", b.OutputGradient(0), y), x, m, false, false);
  return absl::OkStatus();
}

constexpr OpSchema kGemmFamily[] = {
    {OpType::kGemm, 2, 3, 1, 1, ParseGemm, FormatGemm, InferGemm, GemmGradient},
    {OpType::kMatMul, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferMatMul, MatMulGradient},
    {OpType::kBatchMatMul, 2, 2, 1, 1, ParseBatchMatMul, FormatBatchMatMul, InferBatchMatMul, BatchMatMulGradient},
};

}  // namespace

absl::Span<const OpSchema> GemmFamily() { return kGemmFamily; }

}  // namespace lockstep
