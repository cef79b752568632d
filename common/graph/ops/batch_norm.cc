#include "common/graph/ops/batch_norm.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseBatchNorm(const RawAttributes& raw) {
  BatchNormAttributes norm;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Float("epsilon", &norm.epsilon)
                         .Float("momentum", &norm.momentum)
                         .Bool("training_mode", &norm.training_mode)
                         .Bool("unbiased_running_var", &norm.unbiased_running_var)
                         .Finish());
  if (!(norm.epsilon >= 0)) return absl::InvalidArgumentError(absl::StrCat("epsilon ", norm.epsilon, " is negative"));
  if (!(norm.momentum >= 0 && norm.momentum <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat("momentum ", norm.momentum, " is outside of [0, 1]"));
  }
  return OpAttributes(norm);
}

RawAttributes FormatBatchNorm(const OpAttributes& attributes) {
  const auto& norm = std::get<BatchNormAttributes>(attributes);
  return {{"epsilon", norm.epsilon},
          {"momentum", norm.momentum},
          {"training_mode", int64_t{norm.training_mode}},
          {"unbiased_running_var", int64_t{norm.unbiased_running_var}}};
}

// What scale, bias and statistics of X [N, C, d...] look like.
absl::StatusOr<ValueInfo> BatchNormChannels(const ValueInfo& x) {
  LS_RETURN_IF_ERROR(CheckFloating(x, "X"));
  if (x.shape.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("X has shape ", ShapeString(x.shape), "; the op takes [batch, channels, ...]"));
  }
  return ValueInfo{x.dtype, {x.shape[1]}};
}

absl::Status CheckChannels(InputInfos inputs, size_t first, const ValueInfo& channel,
                           absl::Span<const char* const> names) {
  for (size_t i = 0; i < names.size(); ++i) LS_RETURN_IF_ERROR(CheckLike(*inputs[first + i], channel, names[i]));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ValueInfo>> InferBatchNorm(const Node&, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const ValueInfo channel, BatchNormChannels(*inputs[0]));
  LS_RETURN_IF_ERROR(CheckChannels(inputs, 1, channel, {"scale", "bias", "mean", "var"}));
  return std::vector<ValueInfo>{*inputs[0]};
}

absl::StatusOr<std::vector<ValueInfo>> InferBatchNormTraining(const Node&, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const ValueInfo channel, BatchNormChannels(*inputs[0]));
  LS_RETURN_IF_ERROR(CheckChannels(inputs, 1, channel, {"scale", "bias"}));
  if (NumElements(inputs[0]->shape) <= inputs[0]->shape[1]) {
    return absl::InvalidArgumentError(absl::StrCat(
        "X ", ShapeString(inputs[0]->shape),
        " has a single value per channel, whose deviation is zero: raise the batch or lower the logical shards"));
  }
  return std::vector<ValueInfo>{*inputs[0], channel, channel, channel};
}

absl::StatusOr<std::vector<ValueInfo>> InferBatchNormGrad(const Node&, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const ValueInfo channel, BatchNormChannels(*inputs[1]));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], *inputs[1], "dY"));
  LS_RETURN_IF_ERROR(CheckChannels(inputs, 2, channel, {"scale", "saved_mean", "saved_inv_std"}));
  return std::vector<ValueInfo>{*inputs[1], channel, channel};
}

absl::StatusOr<std::vector<ValueInfo>> InferFrozenGrad(const Node&, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(const ValueInfo channel, BatchNormChannels(*inputs[1]));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], *inputs[1], "dY"));
  LS_RETURN_IF_ERROR(CheckChannels(inputs, 2, channel, {"scale", "mean", "var"}));
  return std::vector<ValueInfo>{*inputs[1], channel, channel};
}

absl::Status FrozenGradient(GradientBuilder& b) {
  if (b.Needs(3) || b.Needs(4)) {
    return absl::InvalidArgumentError("given statistics get no gradient, but they depend on parameters");
  }
  const std::vector<std::string> grads = b.EmitMany(
      "dX", OpType::kBatchNormFrozenGrad, {b.OutputGradient(0), b.Input(0), b.Input(1), b.Input(3), b.Input(4)},
      {"dX", "dScale", "dBias"}, b.node().attributes);
  for (size_t i = 0; i < 3; ++i) {
    if (b.Needs(i)) b.SetInputGradient(i, grads[i]);
  }
  return absl::OkStatus();
}

absl::Status BatchNormGradient(GradientBuilder& b) {
  for (size_t i = 1; i < b.node().outputs.size(); ++i) {
    if (!b.OutputGradient(i).empty()) return absl::InvalidArgumentError("batch statistics cannot be differentiated");
  }
  const std::vector<std::string> grads =
      b.EmitMany("dX", OpType::kBatchNormGrad, {b.OutputGradient(0), b.Input(0), b.Input(1), b.Output(1), b.Output(2)},
                 {"dX", "dScale", "dBias"}, b.node().attributes);
  for (size_t i = 0; i < 3; ++i) {
    if (b.Needs(i)) b.SetInputGradient(i, grads[i]);
  }
  return absl::OkStatus();
}

constexpr OpSchema kBatchNormFamily[] = {
    {OpType::kBatchNormalization, 5, 5, 1, 1, ParseBatchNorm, FormatBatchNorm, InferBatchNorm, FrozenGradient},
    {OpType::kBatchNormTraining, 3, 3, 4, 4, ParseBatchNorm, FormatBatchNorm, InferBatchNormTraining,
     BatchNormGradient},
    {OpType::kBatchNormGrad, 5, 5, 3, 3, ParseBatchNorm, FormatBatchNorm, InferBatchNormGrad, nullptr},
    {OpType::kBatchNormFrozenGrad, 5, 5, 3, 3, ParseBatchNorm, FormatBatchNorm, InferFrozenGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> BatchNormFamily() { return kBatchNormFamily; }

}  // namespace lockstep
