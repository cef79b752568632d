#include "common/graph/ops/reduce.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

struct ReduceName {
  ReduceKind kind;
  const char* name;
};
constexpr ReduceName kReduceKinds[] = {{ReduceKind::kMax, "max"},
                                       {ReduceKind::kMin, "min"},
                                       {ReduceKind::kFirstMax, "first_max"},
                                       {ReduceKind::kProd, "prod"},
                                       {ReduceKind::kL1, "l1"},
                                       {ReduceKind::kL2, "l2"},
                                       {ReduceKind::kLogSum, "log_sum"},
                                       {ReduceKind::kLogSumExp, "log_sum_exp"},
                                       {ReduceKind::kSumSquare, "sum_square"}};

AttributeReader& ReadReduce(AttributeReader& reader, ReduceAttributes* reduce) {
  return reader.Ints("axes", &reduce->axes)
      .Bool("keepdims", &reduce->keep_dims)
      .Bool("noop_with_empty_axes", &reduce->noop_with_empty_axes);
}

RawAttributes FormatReduce(const ReduceAttributes& reduce) {
  return {{"axes", reduce.axes},
          {"keepdims", int64_t{reduce.keep_dims}},
          {"noop_with_empty_axes", int64_t{reduce.noop_with_empty_axes}}};
}

absl::StatusOr<OpAttributes> ParseReduce(const RawAttributes& raw) {
  ReduceAttributes reduce;
  AttributeReader reader(raw);
  LS_RETURN_IF_ERROR(ReadReduce(reader, &reduce).Finish());
  return OpAttributes(std::move(reduce));
}

RawAttributes FormatReduce(const OpAttributes& attributes) {
  return FormatReduce(std::get<ReduceAttributes>(attributes));
}

absl::StatusOr<OpAttributes> ParseGrad(const RawAttributes& raw) {
  ReduceGradAttributes grad;
  std::string of = "max";
  AttributeReader reader(raw);
  LS_RETURN_IF_ERROR(ReadReduce(reader.String("of", &of), &grad.reduce).Finish());
  for (const auto& row : kReduceKinds) {
    if (of == row.name) {
      grad.of = row.kind;
      return OpAttributes(std::move(grad));
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("no reduction is called '", of, "'"));
}

RawAttributes FormatGrad(const OpAttributes& attributes) {
  const auto& grad = std::get<ReduceGradAttributes>(attributes);
  RawAttributes raw = FormatReduce(grad.reduce);
  raw.emplace("of", std::string(kReduceKinds[static_cast<size_t>(grad.of)].name));
  return raw;
}

// Which dimensions of a tensor of this rank are summed.
absl::StatusOr<std::vector<bool>> ReducedAxes(const ReduceAttributes& reduce, size_t rank) {
  std::vector<bool> reduced(rank, reduce.axes.empty() && !reduce.noop_with_empty_axes);
  for (const int64_t axis : reduce.axes) {
    LS_ASSIGN_OR_RETURN(const int64_t index, NormalizeAxis(axis, static_cast<int64_t>(rank)));
    if (reduced[index]) return absl::InvalidArgumentError(absl::StrCat("axis ", axis, " is named twice"));
    reduced[index] = true;
  }
  return reduced;
}

absl::StatusOr<Shape> ReducedShape(const ReduceAttributes& reduce, const Shape& from) {
  LS_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReducedAxes(reduce, from.size()));
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!reduced[i]) shape.push_back(from[i]);
    if (reduced[i] && reduce.keep_dims) shape.push_back(1);
  }
  return shape;
}

absl::StatusOr<std::vector<ValueInfo>> InferReduce(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckNumber(*inputs[0], "X"));
  LS_ASSIGN_OR_RETURN(Shape shape, ReducedShape(std::get<ReduceAttributes>(node.attributes), inputs[0]->shape));
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

// Roots and logarithms.
absl::StatusOr<std::vector<ValueInfo>> InferFloating(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "X"));
  return InferReduce(node, inputs);
}

absl::StatusOr<std::vector<ValueInfo>> InferReduceGrad(const Node& node, InputInfos inputs) {
  const auto& grad = std::get<ReduceGradAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[1], "X"));
  LS_ASSIGN_OR_RETURN(Shape shape, ReducedShape(grad.reduce, inputs[1]->shape));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[2], {inputs[1]->dtype, std::move(shape)}, "Y"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], *inputs[2], "dY"));
  return std::vector<ValueInfo>{*inputs[1]};
}

absl::StatusOr<std::vector<ValueInfo>> InferMaskedSum(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "values"));
  if (inputs[0]->shape.empty()) return absl::InvalidArgumentError("values have no rows to mask");
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {inputs[0]->dtype, {inputs[0]->shape[0]}}, "mask"));
  return std::vector<ValueInfo>{{inputs[0]->dtype, {}}};
}

// Spreads dY over the summed dimensions; `mean` divides by the number of summed elements.
absl::Status SpreadReduced(GradientBuilder& b, bool mean) {
  const Shape shape = b.InputInfo(0).shape;
  LS_ASSIGN_OR_RETURN(const std::vector<bool> reduced,
                      ReducedAxes(std::get<ReduceAttributes>(b.node().attributes), shape.size()));
  Shape kept = shape;
  int64_t count = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!reduced[i]) continue;
    count *= shape[i];
    kept[i] = 1;
  }
  std::string gradient = b.OutputGradient(0);
  if (mean && count != 1) {
    gradient = b.Emit("d0.mean", OpType::kScale, {gradient}, ScaleAttributes{1.0 / static_cast<double>(count)});
  }
  gradient = b.ReshapeTo("d0.kept", gradient, kept);
  if (kept != shape) gradient = b.Emit("d0", OpType::kExpand, {gradient}, ExpandAttributes{shape});
  b.SetInputGradient(0, gradient);
  return absl::OkStatus();
}

absl::Status SumGradient(GradientBuilder& b) { return SpreadReduced(b, false); }
absl::Status MeanGradient(GradientBuilder& b) { return SpreadReduced(b, true); }

template <ReduceKind kOf>
absl::Status ReduceGradient(GradientBuilder& b) {
  b.SetInputGradient(0, b.Emit("d0", OpType::kReduceGrad, {b.OutputGradient(0), b.Input(0), b.Output(0)},
                               ReduceGradAttributes{kOf, std::get<ReduceAttributes>(b.node().attributes)}));
  return absl::OkStatus();
}

constexpr OpSchema kReduceFamily[] = {
    {OpType::kReduceSum, 1, 1, 1, 1, ParseReduce, FormatReduce, InferReduce, SumGradient},
    {OpType::kReduceMean, 1, 1, 1, 1, ParseReduce, FormatReduce, InferReduce, MeanGradient},
    {OpType::kReduceMax, 1, 1, 1, 1, ParseReduce, FormatReduce, InferReduce, ReduceGradient<ReduceKind::kMax>},
    {OpType::kReduceMin, 1, 1, 1, 1, ParseReduce, FormatReduce, InferReduce, ReduceGradient<ReduceKind::kMin>},
    {OpType::kReduceProd, 1, 1, 1, 1, ParseReduce, FormatReduce, InferReduce, ReduceGradient<ReduceKind::kProd>},
    {OpType::kReduceL1, 1, 1, 1, 1, ParseReduce, FormatReduce, InferReduce, ReduceGradient<ReduceKind::kL1>},
    {OpType::kReduceL2, 1, 1, 1, 1, ParseReduce, FormatReduce, InferFloating, ReduceGradient<ReduceKind::kL2>},
    {OpType::kReduceLogSum, 1, 1, 1, 1, ParseReduce, FormatReduce, InferFloating, ReduceGradient<ReduceKind::kLogSum>},
    {OpType::kReduceLogSumExp, 1, 1, 1, 1, ParseReduce, FormatReduce, InferFloating,
     ReduceGradient<ReduceKind::kLogSumExp>},
    {OpType::kReduceSumSquare, 1, 1, 1, 1, ParseReduce, FormatReduce, InferReduce,
     ReduceGradient<ReduceKind::kSumSquare>},
    {OpType::kReduceGrad, 3, 3, 1, 1, ParseGrad, FormatGrad, InferReduceGrad, nullptr},
    {OpType::kMaskedSum, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferMaskedSum, nullptr},
};

}  // namespace

absl::Span<const OpSchema> ReduceFamily() { return kReduceFamily; }

}  // namespace lockstep
