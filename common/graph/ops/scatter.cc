#include "common/graph/ops/scatter.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/indices.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// In the order of ScatterReduction.
constexpr std::array<absl::string_view, 5> kReductions = {"none", "add", "mul", "max", "min"};

std::string NameOf(ScatterReduction reduction) { return std::string(kReductions[static_cast<size_t>(reduction)]); }

absl::StatusOr<ScatterReduction> ParseName(const std::string& name) {
  const auto* found = std::find(kReductions.begin(), kReductions.end(), name);
  if (found != kReductions.end()) return static_cast<ScatterReduction>(found - kReductions.begin());
  return absl::InvalidArgumentError(absl::StrCat("reduction '", name, "' is neither none, add, mul, max nor min"));
}

absl::StatusOr<OpAttributes> ParseScatter(const RawAttributes& raw) {
  ScatterAttributes scatter;
  std::string reduction = NameOf(scatter.reduction);
  LS_RETURN_IF_ERROR(AttributeReader(raw).Int("axis", &scatter.axis).String("reduction", &reduction).Finish());
  LS_ASSIGN_OR_RETURN(scatter.reduction, ParseName(reduction));
  return OpAttributes(scatter);
}

RawAttributes FormatScatter(const OpAttributes& attributes) {
  const auto& scatter = std::get<ScatterAttributes>(attributes);
  return {{"axis", scatter.axis}, {"reduction", NameOf(scatter.reduction)}};
}

absl::StatusOr<OpAttributes> ParseScatterNd(const RawAttributes& raw) {
  ScatterNdAttributes scatter;
  std::string reduction = NameOf(scatter.reduction);
  LS_RETURN_IF_ERROR(AttributeReader(raw).String("reduction", &reduction).Finish());
  LS_ASSIGN_OR_RETURN(scatter.reduction, ParseName(reduction));
  return OpAttributes(scatter);
}

RawAttributes FormatScatterNd(const OpAttributes& attributes) {
  return {{"reduction", NameOf(std::get<ScatterNdAttributes>(attributes).reduction)}};
}

// The shape of the updates.
absl::StatusOr<Shape> ElementsShape(const Node& node, const Shape& x, const Shape& indices) {
  LS_ASSIGN_OR_RETURN(const int64_t axis,
                      NormalizeAxis(std::get<ScatterAttributes>(node.attributes).axis, static_cast<int64_t>(x.size())));
  LS_RETURN_IF_ERROR(CheckElementIndices(x, indices, axis));
  return indices;
}

absl::StatusOr<Shape> CoordinatesShape(const Node&, const Shape& x, const Shape& indices) {
  LS_RETURN_IF_ERROR(CheckCoordinates(x, indices, 0));
  Shape shape(indices.begin(), indices.end() - 1);
  shape.insert(shape.end(), x.begin() + indices.back(), x.end());
  return shape;
}

using UpdatesShape = absl::StatusOr<Shape> (*)(const Node& node, const Shape& x, const Shape& indices);

template <UpdatesShape updates_shape>
absl::StatusOr<std::vector<ValueInfo>> InferScatter(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckIndices(*inputs[1], "indices"));
  LS_ASSIGN_OR_RETURN(Shape shape, updates_shape(node, inputs[0]->shape, inputs[1]->shape));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[2], {inputs[0]->dtype, std::move(shape)}, "updates"));
  return std::vector<ValueInfo>{*inputs[0]};
}

template <UpdatesShape updates_shape>
absl::StatusOr<std::vector<ValueInfo>> InferScatterGrad(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_RETURN_IF_ERROR(CheckIndices(*inputs[1], "indices"));
  LS_RETURN_IF_ERROR(updates_shape(node, inputs[0]->shape, inputs[1]->shape).status());
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::Status CheckDifferentiable(ScatterReduction reduction) {
  if (reduction == ScatterReduction::kNone || reduction == ScatterReduction::kAdd) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("reduction '", NameOf(reduction),
                                                 "' lies between the parameters and the loss and has no gradient; "
                                                 "those with one are none and add"));
}

// `grad` zeroes what was written, `gather` reads it.
absl::Status SpreadScattered(GradientBuilder& b, ScatterReduction reduction, OpType grad, OpAttributes grad_attributes,
                             OpType gather, OpAttributes gather_attributes) {
  LS_RETURN_IF_ERROR(CheckDifferentiable(reduction));
  const std::string gradient = b.OutputGradient(0);
  if (b.Needs(0)) {
    const bool kept = reduction == ScatterReduction::kAdd;
    b.SetInputGradient(0, kept ? gradient : b.Emit("d0", grad, {gradient, b.Input(1)}, std::move(grad_attributes)));
  }
  if (b.Needs(2)) b.SetInputGradient(2, b.Emit("d2", gather, {gradient, b.Input(1)}, std::move(gather_attributes)));
  return absl::OkStatus();
}

absl::Status ElementsGradient(GradientBuilder& b) {
  const auto scatter = std::get<ScatterAttributes>(b.node().attributes);
  return SpreadScattered(b, scatter.reduction, OpType::kScatterElementsGrad, scatter, OpType::kGatherElements,
                         GatherAttributes{scatter.axis});
}

absl::Status CoordinatesGradient(GradientBuilder& b) {
  const auto scatter = std::get<ScatterNdAttributes>(b.node().attributes);
  return SpreadScattered(b, scatter.reduction, OpType::kScatterNDGrad, scatter, OpType::kGatherND,
                         GatherNdAttributes{});
}

constexpr OpSchema kScatterFamily[] = {
    {OpType::kScatterElements, 3, 3, 1, 1, ParseScatter, FormatScatter, InferScatter<ElementsShape>, ElementsGradient},
    {OpType::kScatterND, 3, 3, 1, 1, ParseScatterNd, FormatScatterNd, InferScatter<CoordinatesShape>,
     CoordinatesGradient},
    {OpType::kScatterElementsGrad, 2, 2, 1, 1, ParseScatter, FormatScatter, InferScatterGrad<ElementsShape>, nullptr},
    {OpType::kScatterNDGrad, 2, 2, 1, 1, ParseScatterNd, FormatScatterNd, InferScatterGrad<CoordinatesShape>, nullptr},
};

}  // namespace

absl::Span<const OpSchema> ScatterFamily() { return kScatterFamily; }

}  // namespace lockstep
