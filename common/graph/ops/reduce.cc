#include "common/graph/ops/reduce.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> Parse(const RawAttributes& raw) {
  ReduceAttributes reduce;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Ints("axes", &reduce.axes)
                         .Bool("keepdims", &reduce.keep_dims)
                         .Bool("noop_with_empty_axes", &reduce.noop_with_empty_axes)
                         .Finish());
  return OpAttributes(std::move(reduce));
}

RawAttributes Format(const OpAttributes& attributes) {
  const auto& reduce = std::get<ReduceAttributes>(attributes);
  return {{"axes", reduce.axes},
          {"keepdims", int64_t{reduce.keep_dims}},
          {"noop_with_empty_axes", int64_t{reduce.noop_with_empty_axes}}};
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

absl::StatusOr<std::vector<ValueInfo>> Infer(const Node& node, InputInfos inputs) {
  const auto& reduce = std::get<ReduceAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "X"));
  const Shape& from = inputs[0]->shape;
  LS_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReducedAxes(reduce, from.size()));
  Shape shape;
  for (size_t i = 0; i < from.size(); ++i) {
    if (!reduced[i]) shape.push_back(from[i]);
    if (reduced[i] && reduce.keep_dims) shape.push_back(1);
  }
  return std::vector<ValueInfo>{{inputs[0]->dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferMaskedSum(const Node&, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "values"));
  if (inputs[0]->shape.empty()) return absl::InvalidArgumentError("values have no rows to mask");
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {inputs[0]->dtype, {inputs[0]->shape[0]}}, "mask"));
  return std::vector<ValueInfo>{{inputs[0]->dtype, {}}};
}

// Spreads dY over the summed dimensions; `mean` divides by the number of summed elements.
absl::Status Spread(GradientBuilder& b, bool mean) {
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

absl::Status SumGradient(GradientBuilder& b) { return Spread(b, false); }
absl::Status MeanGradient(GradientBuilder& b) { return Spread(b, true); }

constexpr OpSchema kFamily[] = {
    {OpType::kReduceSum, 1, 1, 1, 1, Parse, Format, Infer, SumGradient},
    {OpType::kReduceMean, 1, 1, 1, 1, Parse, Format, Infer, MeanGradient},
    {OpType::kMaskedSum, 2, 2, 1, 1, ParseNoAttributes, FormatNoAttributes, InferMaskedSum, nullptr},
};

}  // namespace

absl::Span<const OpSchema> ReduceFamily() { return kFamily; }

}  // namespace lockstep
