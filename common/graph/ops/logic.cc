#include "common/graph/ops/logic.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/onnx_dtype.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseCast(const RawAttributes& raw) {
  int64_t to = 0;
  bool saturate = true;  // concerns 8-bit floating types alone
  AttributeReader reader(raw);
  LS_RETURN_IF_ERROR(reader.Int("to", &to).Bool("saturate", &saturate).Finish());
  if (!reader.Has("to")) return absl::InvalidArgumentError("attribute 'to' is missing");
  absl::StatusOr<DType> dtype = DTypeFromOnnx(to);
  if (!dtype.ok()) return absl::InvalidArgumentError(absl::StrCat("attribute 'to': ", dtype.status().message()));
  return OpAttributes(CastAttributes{*dtype});
}

RawAttributes FormatCast(const OpAttributes& attributes) {
  return {{"to", OnnxNumber(std::get<CastAttributes>(attributes).to)}};
}

absl::StatusOr<OpAttributes> ParseIsInf(const RawAttributes& raw) {
  IsInfAttributes detect;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Bool("detect_negative", &detect.detect_negative)
                         .Bool("detect_positive", &detect.detect_positive)
                         .Finish());
  return OpAttributes(detect);
}

RawAttributes FormatIsInf(const OpAttributes& attributes) {
  const auto& detect = std::get<IsInfAttributes>(attributes);
  return {{"detect_negative", int64_t{detect.detect_negative}}, {"detect_positive", int64_t{detect.detect_positive}}};
}

absl::Status CheckBool(const ValueInfo& info, absl::string_view what) {
  if (info.dtype == DType::kBool) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", DTypeName(info.dtype), "; this op takes BOOL. Cast it first"));
}

absl::StatusOr<std::vector<ValueInfo>> InferComparison(const Node& node, InputInfos inputs) {
  if (node.op != OpType::kEqual || inputs[0]->dtype != DType::kBool) {
    LS_RETURN_IF_ERROR(CheckNumber(*inputs[0], "input 0"));
  }
  return InferBroadcast(inputs, DType::kBool);
}

absl::StatusOr<std::vector<ValueInfo>> InferLogic(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckBool(*inputs[0], "input 0"));
  return InferBroadcast(inputs, DType::kBool);
}

absl::StatusOr<std::vector<ValueInfo>> InferTest(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "X"));
  return std::vector<ValueInfo>{{DType::kBool, inputs[0]->shape}};
}

absl::StatusOr<std::vector<ValueInfo>> InferCast(const Node& node, InputInfos inputs) {
  const DType from = inputs[0]->dtype;
  const DType to = std::get<CastAttributes>(node.attributes).to;
  if (IsRareInteger(from) || IsRareInteger(to)) {
    if (CastsToRareInteger(from) || CastsToRareInteger(to)) return std::vector<ValueInfo>{{to, inputs[0]->shape}};
    return absl::InvalidArgumentError(
        absl::StrCat("X is ", DTypeName(from), ", which becomes ", DTypeName(to), " by way of F32, I32 or I64"));
  }
  if (from != DType::kBool && from != DType::kBF16) LS_RETURN_IF_ERROR(CheckNumber(*inputs[0], "X"));
  return std::vector<ValueInfo>{{to, inputs[0]->shape}};
}

absl::StatusOr<std::vector<ValueInfo>> InferWhere(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckBool(*inputs[0], "the condition"));
  LS_ASSIGN_OR_RETURN(std::vector<ValueInfo> infos, InferBroadcast(inputs.subspan(1), inputs[1]->dtype));
  LS_ASSIGN_OR_RETURN(infos[0].shape, BroadcastShapes(inputs[0]->shape, infos[0].shape));
  return infos;
}

absl::StatusOr<std::vector<ValueInfo>> InferWhereGrad(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_RETURN_IF_ERROR(CheckBool(*inputs[1], "the condition"));
  LS_ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(inputs[0]->shape, inputs[1]->shape));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[0]->dtype, shape}, "dY"));
  return std::vector<ValueInfo>{*inputs[0], *inputs[0]};
}

absl::Status CastGradient(GradientBuilder& b) {
  const DType from = b.InputInfo(0).dtype;
  if (!IsFloating(from) || !IsFloating(b.OutputInfo(0).dtype)) return absl::OkStatus();
  b.SetInputGradient(0, b.Emit("d0", OpType::kCast, {b.OutputGradient(0)}, CastAttributes{from}));
  return absl::OkStatus();
}

absl::Status WhereGradient(GradientBuilder& b) {
  if (!b.Needs(1) && !b.Needs(2)) return absl::OkStatus();
  std::vector<std::string> suffixes = {"d1.full"};
  if (b.Needs(2)) suffixes.push_back("d2.full");
  const auto full = b.EmitMany("where", OpType::kWhereGrad, {b.OutputGradient(0), b.Input(0)}, suffixes, {});
  for (size_t i : {1, 2}) {
    if (b.Needs(i)) b.SetInputGradient(i, b.ReduceTo(absl::StrCat("d", i), full[i - 1], b.InputInfo(i).shape));
  }
  return absl::OkStatus();
}

constexpr OpSchema Comparison(OpType type) {
  return {type, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferComparison, nullptr};
}

constexpr OpSchema Logic(OpType type, int operands) {
  return {type, operands, operands, 1, 1, ParseNoAttributes, FormatNoAttributes, InferLogic, nullptr};
}

constexpr OpSchema kLogicFamily[] = {
    Comparison(OpType::kEqual),
    Comparison(OpType::kGreater),
    Comparison(OpType::kGreaterOrEqual),
    Comparison(OpType::kLess),
    Comparison(OpType::kLessOrEqual),
    Logic(OpType::kAnd, 2),
    Logic(OpType::kOr, 2),
    Logic(OpType::kXor, 2),
    Logic(OpType::kNot, 1),
    {OpType::kIsNaN, 1, 1, 1, 1, ParseNoAttributes, FormatNoAttributes, InferTest, nullptr},
    {OpType::kIsInf, 1, 1, 1, 1, ParseIsInf, FormatIsInf, InferTest, nullptr},
    {OpType::kCast, 1, 1, 1, 1, ParseCast, FormatCast, InferCast, CastGradient},
    {OpType::kWhere, 3, 3, 1, 1, ParseNoAttributes, FormatNoAttributes, InferWhere, WhereGradient},
    {OpType::kWhereGrad, 2, 2, 1, 2, ParseNoAttributes, FormatNoAttributes, InferWhereGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> LogicFamily() { return kLogicFamily; }

}  // namespace lockstep
