#include "common/graph/ops/layer_norm.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseLayerNorm(const RawAttributes& raw) {
  LayerNormAttributes norm;
  // The element type of the statistics; they are computed in double and returned in X's type whatever it says.
  int64_t stash_type = 1;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Int("axis", &norm.axis)
                         .Float("epsilon", &norm.epsilon)
                         .Int("stash_type", &stash_type)
                         .Finish());
  if (!(norm.epsilon >= 0)) return absl::InvalidArgumentError(absl::StrCat("epsilon ", norm.epsilon, " is negative"));
  return OpAttributes(norm);
}

RawAttributes FormatLayerNorm(const OpAttributes& attributes) {
  const auto& norm = std::get<LayerNormAttributes>(attributes);
  return {{"axis", norm.axis}, {"epsilon", norm.epsilon}};
}

struct Infos {
  ValueInfo scale;      // also bias
  ValueInfo statistic;  // mean, inv_std
};

absl::StatusOr<Infos> Split(const Node& node, const ValueInfo& x) {
  LS_RETURN_IF_ERROR(CheckFloating(x, "X"));
  LS_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(std::get<LayerNormAttributes>(node.attributes).axis,
                                                        static_cast<int64_t>(x.shape.size())));
  Shape kept(x.shape.begin(), x.shape.begin() + axis);
  kept.resize(x.shape.size(), 1);
  return Infos{{x.dtype, Shape(x.shape.begin() + axis, x.shape.end())}, {x.dtype, std::move(kept)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferLayerNorm(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const Infos infos, Split(node, *inputs[0]));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], infos.scale, "scale"));
  if (inputs[2] != nullptr) LS_RETURN_IF_ERROR(CheckLike(*inputs[2], infos.scale, "bias"));
  return std::vector<ValueInfo>{*inputs[0], infos.statistic, infos.statistic};
}

absl::StatusOr<std::vector<ValueInfo>> InferRmsNorm(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const Infos infos, Split(node, *inputs[0]));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], infos.scale, "scale"));
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::StatusOr<std::vector<ValueInfo>> InferLayerNormGrad(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const Infos infos, Split(node, *inputs[1]));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], *inputs[1], "dY"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[2], infos.scale, "scale"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[3], infos.statistic, "mean"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[4], infos.statistic, "inv_std"));
  if (inputs[5] != nullptr) LS_RETURN_IF_ERROR(CheckLike(*inputs[5], *inputs[1], "dSum"));
  return std::vector<ValueInfo>{*inputs[1], infos.scale, infos.scale};
}

absl::StatusOr<std::vector<ValueInfo>> InferRmsNormGrad(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const Infos infos, Split(node, *inputs[1]));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], *inputs[1], "dY"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[2], infos.scale, "scale"));
  if (inputs[3] != nullptr) LS_RETURN_IF_ERROR(CheckLike(*inputs[3], *inputs[1], "dSum"));
  return std::vector<ValueInfo>{*inputs[1], infos.scale};
}

absl::Status LayerNormGradient(GradientBuilder& b) {
  for (size_t i = 1; i < b.node().outputs.size(); ++i) {
    if (!b.OutputGradient(i).empty()) return absl::InvalidArgumentError("mean and inv_std cannot be differentiated");
  }
  const std::vector<std::string> grads =
      b.EmitMany("dX", OpType::kLayerNormGrad, {b.OutputGradient(0), b.Input(0), b.Input(1), b.Output(1), b.Output(2)},
                 {"dX", "dScale", "dBias"}, b.node().attributes);
  for (size_t i = 0; i < 3; ++i) {
    if (b.Needs(i)) b.SetInputGradient(i, grads[i]);
  }
  return absl::OkStatus();
}

absl::Status RmsNormGradient(GradientBuilder& b) {
  const std::vector<std::string> grads = b.EmitMany(
      "dX", OpType::kRmsNormGrad, {b.OutputGradient(0), b.Input(0), b.Input(1)}, {"dX", "dScale"}, b.node().attributes);
  for (size_t i = 0; i < 2; ++i) {
    if (b.Needs(i)) b.SetInputGradient(i, grads[i]);
  }
  return absl::OkStatus();
}

constexpr OpSchema kLayerNormFamily[] = {
    {OpType::kLayerNormalization, 2, 3, 1, 3, ParseLayerNorm, FormatLayerNorm, InferLayerNorm, LayerNormGradient},
    {OpType::kRmsNormalization, 2, 2, 1, 1, ParseLayerNorm, FormatLayerNorm, InferRmsNorm, RmsNormGradient},
    {OpType::kLayerNormGrad, 5, 6, 3, 3, ParseLayerNorm, FormatLayerNorm, InferLayerNormGrad, nullptr},
    {OpType::kRmsNormGrad, 3, 4, 2, 2, ParseLayerNorm, FormatLayerNorm, InferRmsNormGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> LayerNormFamily() { return kLayerNormFamily; }

}  // namespace lockstep
