#include "common/graph/ops/group_norm.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseGroupNorm(const RawAttributes& raw) {
  GroupNormAttributes norm;
  // The element type of the statistics; they are computed in double whatever it says.
  int64_t stash_type = 1;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Int("num_groups", &norm.num_groups)
                         .Float("epsilon", &norm.epsilon)
                         .Int("stash_type", &stash_type)
                         .Finish());
  if (norm.num_groups < 0) return absl::InvalidArgumentError(absl::StrCat("num_groups is ", norm.num_groups));
  if (!(norm.epsilon >= 0)) return absl::InvalidArgumentError(absl::StrCat("epsilon ", norm.epsilon, " is negative"));
  return OpAttributes(norm);
}

RawAttributes FormatGroupNorm(const OpAttributes& attributes) {
  const auto& norm = std::get<GroupNormAttributes>(attributes);
  return {{"num_groups", norm.num_groups}, {"epsilon", norm.epsilon}};
}

// What scale and bias of X look like.
absl::StatusOr<ValueInfo> GroupNormChannels(const Node& node, const ValueInfo& x) {
  LS_RETURN_IF_ERROR(CheckFloating(x, "X"));
  if (x.shape.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("X has shape ", ShapeString(x.shape), "; the op takes [batch, channels, ...]"));
  }
  const int64_t groups = std::get<GroupNormAttributes>(node.attributes).num_groups;
  if (groups != 0 && x.shape[1] % groups != 0) {
    return absl::InvalidArgumentError(absl::StrCat(x.shape[1], " channels are not divided by num_groups ", groups));
  }
  return ValueInfo{x.dtype, {x.shape[1]}};
}

absl::StatusOr<std::vector<ValueInfo>> InferInGroups(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const ValueInfo channel, GroupNormChannels(node, *inputs[0]));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], channel, "scale"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[2], channel, "bias"));
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::StatusOr<std::vector<ValueInfo>> InferGroupNorm(const Node& node, InputInfos inputs) {
  if (std::get<GroupNormAttributes>(node.attributes).num_groups == 0) {
    return absl::InvalidArgumentError("num_groups is missing");
  }
  return InferInGroups(node, inputs);
}

absl::StatusOr<std::vector<ValueInfo>> InferInstanceNorm(const Node& node, InputInfos inputs) {
  if (std::get<GroupNormAttributes>(node.attributes).num_groups != 0) {
    return absl::InvalidArgumentError("num_groups belongs to GroupNormalization");
  }
  return InferInGroups(node, inputs);
}

absl::StatusOr<std::vector<ValueInfo>> InferGroupNormGrad(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const ValueInfo channel, GroupNormChannels(node, *inputs[1]));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], *inputs[1], "dY"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[2], channel, "scale"));
  return std::vector<ValueInfo>{*inputs[1], channel, channel};
}

absl::Status GroupNormGradient(GradientBuilder& b) {
  const std::vector<std::string> grads =
      b.EmitMany("dX", OpType::kGroupNormGrad, {b.OutputGradient(0), b.Input(0), b.Input(1)}, {"dX", "dScale", "dBias"},
                 b.node().attributes);
  for (size_t i = 0; i < 3; ++i) {
    if (b.Needs(i)) b.SetInputGradient(i, grads[i]);
  }
  return absl::OkStatus();
}

constexpr OpSchema kGroupNormFamily[] = {
    {OpType::kGroupNormalization, 3, 3, 1, 1, ParseGroupNorm, FormatGroupNorm, InferGroupNorm, GroupNormGradient},
    {OpType::kInstanceNormalization, 3, 3, 1, 1, ParseGroupNorm, FormatGroupNorm, InferInstanceNorm, GroupNormGradient},
    {OpType::kGroupNormGrad, 3, 3, 3, 3, ParseGroupNorm, FormatGroupNorm, InferGroupNormGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> GroupNormFamily() { return kGroupNormFamily; }

}  // namespace lockstep
