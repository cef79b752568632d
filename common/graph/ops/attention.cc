#include "common/graph/ops/attention.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseAttention(const RawAttributes& raw) {
  AttentionAttributes attention;
  int64_t stream = 0;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Float("scale", &attention.scale)
                         .Bool("causal", &attention.causal)
                         .Bool("q_rows", &attention.q_rows)
                         .Bool("k_rows", &attention.k_rows)
                         .Bool("v_rows", &attention.v_rows)
                         .Bool("y_rows", &attention.y_rows)
                         .Int("packed_heads", &attention.packed_heads)
                         .Float("ratio", &attention.ratio)
                         .Int("stream", &stream)
                         .Finish());
  if (!(attention.ratio >= 0 && attention.ratio < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("ratio ", attention.ratio, " is outside of [0, 1)"));
  }
  if (attention.packed_heads < 0) {
    return absl::InvalidArgumentError(absl::StrCat("packed_heads ", attention.packed_heads, " is negative"));
  }
  attention.stream = static_cast<uint64_t>(stream);
  return OpAttributes(attention);
}

RawAttributes FormatAttention(const OpAttributes& attributes) {
  const auto& attention = std::get<AttentionAttributes>(attributes);
  return {{"scale", attention.scale},
          {"causal", int64_t{attention.causal}},
          {"q_rows", int64_t{attention.q_rows}},
          {"k_rows", int64_t{attention.k_rows}},
          {"v_rows", int64_t{attention.v_rows}},
          {"y_rows", int64_t{attention.y_rows}},
          {"packed_heads", attention.packed_heads},
          {"ratio", attention.ratio},
          {"stream", static_cast<int64_t>(attention.stream)}};
}

struct Extents {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t length = 0;
  int64_t size = 0;

  Shape shape(bool rows) const { return rows ? Shape{batch, length, heads, size} : Shape{batch, heads, length, size}; }
};

absl::StatusOr<Extents> ExtentsOf(const ValueInfo& info, bool rows, absl::string_view what) {
  LS_RETURN_IF_ERROR(CheckFloating(info, what));
  if (info.shape.size() != 4) {
    return absl::InvalidArgumentError(absl::StrCat(what, " has shape ", ShapeString(info.shape), "; it has rank 4"));
  }
  return Extents{info.shape[0], info.shape[rows ? 2 : 1], info.shape[rows ? 1 : 2], info.shape[3]};
}

struct Operands {
  Extents q;
  Extents k;
  Extents v;
};

absl::StatusOr<Operands> Packed(const AttentionAttributes& attributes, const ValueInfo& qkv) {
  LS_ASSIGN_OR_RETURN(const Extents all, ExtentsOf(qkv, true, "QKV"));
  const int64_t rest = all.heads - attributes.packed_heads;
  if (rest < 2 || rest % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("packed_heads ", attributes.packed_heads, " of ", all.heads,
                                                   " leave no heads for keys and as many for values"));
  }
  Operands operands{all, all, all};
  operands.q.heads = attributes.packed_heads;
  operands.k.heads = operands.v.heads = rest / 2;
  return operands;
}

absl::StatusOr<Operands> ReadOperands(const AttentionAttributes& attributes, const ValueInfo& q, const ValueInfo* k,
                                      const ValueInfo* v) {
  if ((attributes.packed_heads > 0) != (k == nullptr) || (k == nullptr) != (v == nullptr)) {
    return absl::InvalidArgumentError("K and V are given, both, exactly where packed_heads is 0");
  }
  if (k == nullptr) return Packed(attributes, q);
  Operands operands;
  LS_ASSIGN_OR_RETURN(operands.q, ExtentsOf(q, attributes.q_rows, "Q"));
  LS_ASSIGN_OR_RETURN(operands.k, ExtentsOf(*k, attributes.k_rows, "K"));
  LS_ASSIGN_OR_RETURN(operands.v, ExtentsOf(*v, attributes.v_rows, "V"));
  const Extents expected_k{operands.q.batch, operands.v.heads, operands.v.length, operands.q.size};
  LS_RETURN_IF_ERROR(CheckLike(*k, {q.dtype, expected_k.shape(attributes.k_rows)}, "K, next to Q and V,"));
  const Extents expected_v{operands.q.batch, operands.k.heads, operands.k.length, operands.v.size};
  LS_RETURN_IF_ERROR(CheckLike(*v, {q.dtype, expected_v.shape(attributes.v_rows)}, "V, next to Q and K,"));
  return operands;
}

// The checked operands, the mask and `random` among them.
absl::StatusOr<Operands> Check(const AttentionAttributes& attributes, const ValueInfo& q, const ValueInfo* k,
                               const ValueInfo* v, const ValueInfo* mask, const ValueInfo* random) {
  LS_ASSIGN_OR_RETURN(Operands operands, ReadOperands(attributes, q, k, v));
  if (operands.k.heads == 0 || operands.q.heads % operands.k.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(operands.q.heads, " heads of Q are no multiple of the ", operands.k.heads, " of K and V"));
  }
  if (mask != nullptr) {
    const Shape pairs = {operands.q.batch, operands.q.heads, operands.q.length, operands.k.length};
    LS_ASSIGN_OR_RETURN(const Shape both, BroadcastShapes(mask->shape, pairs));
    if (both != pairs || mask->shape.size() != 4) {
      return absl::InvalidArgumentError(
          absl::StrCat("mask ", ShapeString(mask->shape), " does not broadcast to ", ShapeString(pairs)));
    }
    LS_RETURN_IF_ERROR(CheckLike({mask->dtype, {}}, {q.dtype, {}}, "mask's type"));
  }
  if ((random != nullptr) != (attributes.ratio > 0)) {
    return absl::InvalidArgumentError("`random` is there exactly where the ratio of the dropout is above 0");
  }
  if (random != nullptr) LS_RETURN_IF_ERROR(CheckLike(*random, {DType::kI64, {4}}, "random"));
  return operands;
}

ValueInfo ResultOf(const AttentionAttributes& attributes, const Operands& operands, DType dtype) {
  Extents y = operands.q;
  y.size = operands.v.size;
  return {dtype, y.shape(attributes.y_rows)};
}

ValueInfo AttentionStatistics(const Operands& operands, DType dtype) {
  return {dtype, {operands.q.batch, operands.q.heads, operands.q.length, 2}};
}

absl::StatusOr<std::vector<ValueInfo>> InferAttention(const Node& node, InputInfos inputs) {
  const auto& attributes = std::get<AttentionAttributes>(node.attributes);
  if (node.inputs.size() < 3)
    return absl::InvalidArgumentError("Q, K and V are named, the latter two maybe as omitted");
  LS_ASSIGN_OR_RETURN(const Operands operands,
                      Check(attributes, *inputs[0], inputs[1], inputs[2], inputs[3], inputs[4]));
  const DType dtype = inputs[0]->dtype;
  return std::vector<ValueInfo>{ResultOf(attributes, operands, dtype), AttentionStatistics(operands, dtype)};
}

absl::StatusOr<std::vector<ValueInfo>> InferAttentionGrad(const Node& node, InputInfos inputs) {
  const auto& attributes = std::get<AttentionAttributes>(node.attributes);
  const ValueInfo& q = *inputs[1];
  LS_ASSIGN_OR_RETURN(const Operands operands, Check(attributes, q, inputs[2], inputs[3], inputs[6], inputs[7]));
  const ValueInfo y = ResultOf(attributes, operands, q.dtype);
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], y, "dY"));
  if (inputs[4] == nullptr || inputs[5] == nullptr) return absl::InvalidArgumentError("Y and statistics are missing");
  LS_RETURN_IF_ERROR(CheckLike(*inputs[4], y, "Y"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[5], AttentionStatistics(operands, q.dtype), "statistics"));
  if (attributes.packed_heads > 0) return std::vector<ValueInfo>{q, {}, {}};
  return std::vector<ValueInfo>{q, *inputs[2], *inputs[3]};
}

absl::Status AttentionGradient(GradientBuilder& b) {
  if (b.node().outputs.size() < 2 || b.Output(1).empty()) {
    return absl::InvalidArgumentError("statistics are needed to differentiate it");
  }
  if (!b.OutputGradient(1).empty()) return absl::InvalidArgumentError("statistics cannot be differentiated");
  if (b.Needs(3)) return absl::InvalidArgumentError("the mask cannot be differentiated");
  const auto input = [&](size_t i) { return b.HasInput(i) ? b.Input(i) : std::string(); };
  const bool packed = std::get<AttentionAttributes>(b.node().attributes).packed_heads > 0;
  std::vector<std::string> outputs = {"dQ"};
  if (!packed) outputs.insert(outputs.end(), {"dK", "dV"});
  const std::vector<std::string> grads =
      b.EmitMany("dQ", OpType::kAttentionGrad,
                 {b.OutputGradient(0), b.Input(0), input(1), input(2), b.Output(0), b.Output(1), input(3), input(4)},
                 outputs, b.node().attributes);
  for (size_t i = 0; i < grads.size(); ++i) {
    if (b.Needs(i)) b.SetInputGradient(i, grads[i]);
  }
  return absl::OkStatus();
}

constexpr OpSchema kAttentionFamily[] = {
    {OpType::kAttention, 1, 5, 1, 2, ParseAttention, FormatAttention, InferAttention, AttentionGradient},
    {OpType::kAttentionGrad, 2, 8, 1, 3, ParseAttention, FormatAttention, InferAttentionGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> AttentionFamily() { return kAttentionFamily; }

}  // namespace lockstep
