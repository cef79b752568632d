#include "common/graph/ops/pointwise_loss.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/reduction.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

struct PointwiseLossName {
  PointwiseLossKind kind;
  const char* name;
};
constexpr PointwiseLossName kPointwiseLossKinds[] = {{PointwiseLossKind::kMse, "mse"},
                                                     {PointwiseLossKind::kL1, "l1"},
                                                     {PointwiseLossKind::kHuber, "huber"},
                                                     {PointwiseLossKind::kBceWithLogits, "bce_with_logits"}};

absl::StatusOr<OpAttributes> ParsePointwiseLoss(const RawAttributes& raw) {
  PointwiseLossAttributes loss;
  std::string kind = "mse";
  std::string reduction = ReductionName(loss.reduction);
  LS_RETURN_IF_ERROR(
      AttributeReader(raw).String("kind", &kind).String("reduction", &reduction).Float("delta", &loss.delta).Finish());
  LS_ASSIGN_OR_RETURN(loss.reduction, ParseReduction(reduction));
  if (!(loss.delta > 0)) return absl::InvalidArgumentError(absl::StrCat("delta ", loss.delta, " is not positive"));
  for (const auto& row : kPointwiseLossKinds) {
    if (kind == row.name) {
      loss.kind = row.kind;
      return OpAttributes(loss);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown loss '", kind, "'"));
}

RawAttributes FormatPointwiseLoss(const OpAttributes& attributes) {
  const auto& loss = std::get<PointwiseLossAttributes>(attributes);
  return {{"kind", std::string(kPointwiseLossKinds[static_cast<size_t>(loss.kind)].name)},
          {"reduction", ReductionName(loss.reduction)},
          {"delta", loss.delta}};
}

absl::StatusOr<std::vector<ValueInfo>> InferPointwiseLoss(const Node& node, InputInfos inputs) {
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "prediction"));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], *inputs[0], "target"));
  const auto& loss = std::get<PointwiseLossAttributes>(node.attributes);
  return std::vector<ValueInfo>{{inputs[0]->dtype, loss.reduction == Reduction::kNone ? inputs[0]->shape : Shape{}}};
}

absl::StatusOr<std::vector<ValueInfo>> InferPointwiseLossGrad(const Node& node, InputInfos inputs) {
  const auto& loss = std::get<PointwiseLossAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckLike(*inputs[2], *inputs[1], "target"));
  const Shape shape = loss.reduction == Reduction::kNone ? inputs[1]->shape : Shape{};
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[1]->dtype, shape}, "dLoss"));
  return std::vector<ValueInfo>{*inputs[1]};
}

absl::Status PointwiseLossGradient(GradientBuilder& b) {
  if (b.Needs(1)) {
    return absl::InvalidArgumentError("the target of a loss gets no gradient, but it depends on parameters");
  }
  b.SetInputGradient(
      0, b.Emit("d0", OpType::kPointwiseLossGrad, {b.OutputGradient(0), b.Input(0), b.Input(1)}, b.node().attributes));
  return absl::OkStatus();
}

constexpr OpSchema kPointwiseLossFamily[] = {
    {OpType::kPointwiseLoss, 2, 2, 1, 1, ParsePointwiseLoss, FormatPointwiseLoss, InferPointwiseLoss,
     PointwiseLossGradient},
    {OpType::kPointwiseLossGrad, 3, 3, 1, 1, ParsePointwiseLoss, FormatPointwiseLoss, InferPointwiseLossGrad, nullptr},
};

}  // namespace

absl::Span<const OpSchema> PointwiseLossFamily() { return kPointwiseLossFamily; }

}  // namespace lockstep
