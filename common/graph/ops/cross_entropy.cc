#include "common/graph/ops/cross_entropy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/reduction.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseCrossEntropy(const RawAttributes& raw) {
  CrossEntropyAttributes loss;
  std::string reduction = ReductionName(loss.reduction);
  std::string dtype(DTypeName(loss.dtype));
  int64_t ignore = 0;
  AttributeReader reader(raw);
  LS_RETURN_IF_ERROR(
      reader.String("reduction", &reduction).Int("ignore_index", &ignore).String("dtype", &dtype).Finish());
  LS_ASSIGN_OR_RETURN(loss.reduction, ParseReduction(reduction));
  if (reader.Has("ignore_index")) loss.ignore_index = ignore;
  const std::optional<DType> parsed = ParseDType(dtype);
  if (!parsed.has_value()) return absl::InvalidArgumentError(absl::StrCat("unknown element type '", dtype, "'"));
  loss.dtype = *parsed;
  return OpAttributes(loss);
}

RawAttributes FormatCrossEntropy(const OpAttributes& attributes) {
  const auto& loss = std::get<CrossEntropyAttributes>(attributes);
  RawAttributes raw = {{"reduction", ReductionName(loss.reduction)}, {"dtype", std::string(DTypeName(loss.dtype))}};
  if (loss.ignore_index.has_value()) raw.emplace("ignore_index", *loss.ignore_index);
  return raw;
}

// The shape of the labels that belong to scores [N, C, d...].
absl::StatusOr<Shape> LabelShape(const ValueInfo& scores) {
  LS_RETURN_IF_ERROR(CheckFloating(scores, "scores"));
  if (scores.shape.size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("scores have shape ", ShapeString(scores.shape), "; the loss takes [batch, classes, ...]"));
  }
  Shape shape = scores.shape;
  shape.erase(shape.begin() + 1);
  return shape;
}

absl::Status CheckLabels(const ValueInfo& scores, const ValueInfo& labels, const ValueInfo* weights) {
  LS_ASSIGN_OR_RETURN(Shape shape, LabelShape(scores));
  LS_RETURN_IF_ERROR(CheckIndices(labels, "labels"));
  LS_RETURN_IF_ERROR(CheckLike(labels, {labels.dtype, std::move(shape)}, "labels"));
  if (weights == nullptr) return absl::OkStatus();
  return CheckLike(*weights, {scores.dtype, {scores.shape[1]}}, "class weights");
}

ValueInfo CrossEntropyStatistics(const ValueInfo& scores, const ValueInfo& labels) {
  Shape shape = labels.shape;
  shape.push_back(2);
  return {scores.dtype, std::move(shape)};
}

absl::StatusOr<std::vector<ValueInfo>> InferCrossEntropyLoss(const Node& node, InputInfos inputs) {
  const auto& loss = std::get<CrossEntropyAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckLabels(*inputs[0], *inputs[1], inputs[2]));
  const Shape shape = loss.reduction == Reduction::kNone ? inputs[1]->shape : Shape{};
  return std::vector<ValueInfo>{{inputs[0]->dtype, shape}, *inputs[0], CrossEntropyStatistics(*inputs[0], *inputs[1])};
}

absl::StatusOr<std::vector<ValueInfo>> InferCrossEntropyGrad(const Node& node, InputInfos inputs) {
  const auto& loss = std::get<CrossEntropyAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckLabels(*inputs[1], *inputs[2], inputs[3]));
  const Shape shape = loss.reduction == Reduction::kNone ? inputs[2]->shape : Shape{};
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[1]->dtype, shape}, "dLoss"));
  if (inputs.size() > 4 && inputs[4] != nullptr) {
    LS_RETURN_IF_ERROR(CheckLike(*inputs[4], CrossEntropyStatistics(*inputs[1], *inputs[2]), "statistics"));
  }
  return std::vector<ValueInfo>{*inputs[1]};
}

absl::StatusOr<std::vector<ValueInfo>> InferWeights(const Node& node, InputInfos inputs) {
  const auto& loss = std::get<CrossEntropyAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckIndices(*inputs[0], "labels"));
  LS_RETURN_IF_ERROR(CheckFloating({loss.dtype, {}}, "the weight"));
  if (loss.reduction == Reduction::kMean) return absl::InvalidArgumentError("weights have no mean");
  if (inputs[1] != nullptr && (inputs[1]->dtype != loss.dtype || inputs[1]->shape.size() != 1)) {
    return absl::InvalidArgumentError(absl::StrCat("class weights are ", DTypeName(inputs[1]->dtype), " ",
                                                   ShapeString(inputs[1]->shape), ", expected ", DTypeName(loss.dtype),
                                                   " [classes]"));
  }
  return std::vector<ValueInfo>{{loss.dtype, loss.reduction == Reduction::kNone ? inputs[0]->shape : Shape{}}};
}

absl::StatusOr<std::vector<ValueInfo>> InferLikelihood(const Node& node, InputInfos inputs) {
  LS_ASSIGN_OR_RETURN(std::vector<ValueInfo> infos, InferCrossEntropyLoss(node, inputs));
  infos.resize(1);
  return infos;
}

absl::Status CheckNoWeightGradient(const GradientBuilder& b) {
  if (!b.Needs(2)) return absl::OkStatus();
  return absl::InvalidArgumentError("class weights cannot be trained; make them a constant");
}

// The gradient of a loss through `grad`, which reads log_prob, or the scores where there are statistics.
std::string LossGradient(GradientBuilder& b, OpType grad, const std::string& scores,
                         const std::string& statistics = "") {
  std::vector<std::string> inputs = {b.OutputGradient(0), scores, b.Input(1)};
  if (b.HasInput(2)) inputs.push_back(b.Input(2));
  if (!statistics.empty()) {
    inputs.resize(4);
    inputs.push_back(statistics);
  }
  return b.Emit("d0", grad, std::move(inputs), b.node().attributes);
}

// Both outputs may be read: their gradients add up.
absl::Status CrossEntropyGradient(GradientBuilder& b) {
  LS_RETURN_IF_ERROR(CheckNoWeightGradient(b));
  std::string gradient;
  const bool statistics = b.node().outputs.size() > 2 && !b.Output(2).empty();
  if (statistics && !b.OutputGradient(2).empty()) {
    return absl::InvalidArgumentError("statistics cannot be differentiated");
  }
  if (!b.OutputGradient(0).empty()) {
    gradient = statistics ? LossGradient(b, OpType::kSoftmaxCrossEntropyLossGrad, b.Input(0), b.Output(2))
                          : LossGradient(b, OpType::kSoftmaxCrossEntropyLossGrad, b.Output(1));
  }
  if (b.node().outputs.size() > 1 && !b.OutputGradient(1).empty()) {
    const std::string other = b.Emit("d0.log_prob", OpType::kLogSoftmaxGrad, {b.OutputGradient(1), b.Output(1)},
                                     SoftmaxAttributes{.axis = 1});
    gradient = gradient.empty() ? other : b.Emit("d0.total", OpType::kAdd, {gradient, other});
  }
  b.SetInputGradient(0, gradient);
  return absl::OkStatus();
}

absl::Status LikelihoodGradient(GradientBuilder& b) {
  LS_RETURN_IF_ERROR(CheckNoWeightGradient(b));
  b.SetInputGradient(0, LossGradient(b, OpType::kNegativeLogLikelihoodLossGrad, b.Input(0)));
  return absl::OkStatus();
}

constexpr OpSchema kCrossEntropyFamily[] = {
    {OpType::kSoftmaxCrossEntropyLoss, 2, 3, 1, 3, ParseCrossEntropy, FormatCrossEntropy, InferCrossEntropyLoss,
     CrossEntropyGradient},
    {OpType::kSoftmaxCrossEntropyLossGrad, 3, 5, 1, 1, ParseCrossEntropy, FormatCrossEntropy, InferCrossEntropyGrad,
     nullptr},
    {OpType::kNegativeLogLikelihoodLoss, 2, 3, 1, 1, ParseCrossEntropy, FormatCrossEntropy, InferLikelihood,
     LikelihoodGradient},
    {OpType::kNegativeLogLikelihoodLossGrad, 3, 4, 1, 1, ParseCrossEntropy, FormatCrossEntropy, InferCrossEntropyGrad,
     nullptr},
    {OpType::kLossWeights, 1, 2, 1, 1, ParseCrossEntropy, FormatCrossEntropy, InferWeights, nullptr},
};

}  // namespace

absl::Span<const OpSchema> CrossEntropyFamily() { return kCrossEntropyFamily; }

}  // namespace lockstep
