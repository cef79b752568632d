#include "common/graph/passes/loss.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "common/graph/passes/samples_apart.h"
#include "common/graph/passes/training_graph.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr char kPrefix[] = "lockstep.loss.";

// A loss that compares two values, whatever part of the job it came from.
struct Comparison {
  OpType op = OpType::kSoftmaxCrossEntropyLoss;  // or kPointwiseLoss
  std::vector<std::string> inputs;               // prediction, target, class weights?
  CrossEntropyAttributes cross_entropy;
  PointwiseLossAttributes pointwise;

  bool has_classes() const { return ComparesClasses(op); }
};

Tensor ScalarsOf(DType dtype, Shape shape, const std::vector<double>& values) {
  if (dtype == DType::kF64) return Tensor::Of<double>(std::move(shape), values);
  const std::vector<float> rounded(values.begin(), values.end());
  return Tensor::Of<float>(std::move(shape), rounded);
}

// What a cross entropy gives beside the loss: for its gradient, or for somebody else.
enum class Beside : uint8_t { kNothing, kStatistics, kLogProb };

class LossWriter {
 public:
  LossWriter(Graph* graph, int64_t batch) : graph_(graph), batch_(batch) {}

  const ValueInfo& Info(const std::string& value) const { return graph_->values.at(value); }

  absl::Status Add(OpType op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                   OpAttributes attributes = NoAttributes{}) {
    std::string name = outputs[0];
    return AppendNode(graph_, {std::move(name), op, std::move(inputs), std::move(outputs), std::move(attributes)});
  }

  // The loss named in the job as a comparison of the output with the label.
  absl::StatusOr<Comparison> FromRule(const LossRule& rule, const std::string& output);

  // Scores and labels as a list of rows, one per label: views.
  absl::Status UseRows(Comparison* loss);

  // What a scalar output of the graph is the mean of; no inputs when it is not a comparison.
  absl::StatusOr<Comparison> FromScalar(const std::string& output);

  // Names `output` with sum and number of elements per pass, for a comparison with the given reduction. Names of what
  // is beside it begin with `prefix`.
  absl::Status AddLoss(const Comparison& loss, Reduction reduction, const std::string& value, Beside beside,
                       const std::string& prefix = kPrefix);

  // A scalar number as a node's output.
  absl::Status AddNumber(const std::string& name, DType dtype, double number) {
    AppendConstant(graph_, kPrefix + name, ScalarsOf(dtype, {}, {number}));
    return Add(OpType::kScale, {kPrefix + name}, {name}, ScaleAttributes{1.0});
  }

  absl::Status AddTraining(const Comparison& loss, double label_smoothing);
  // Of a scalar output: as FromScalar found it, or its own value for each sample.
  absl::Status AddWhole(const Comparison& loss, const std::string& output);
  // Of each sample's label and its partner's, by their shares.
  absl::Status AddMixed(const Comparison& loss, double label_smoothing);
  absl::Status AddEvaluation(const Comparison& loss);

 private:
  // (1 - smoothing) * the loss + smoothing * the mean of -log_prob over the classes, as kLossSum.
  absl::Status AddSmoothed(const Comparison& loss, double smoothing);
  // The same from the sum of the losses, and per label the sum of log_prob over the classes and its weight.
  absl::Status AddSpread(const std::string& hard, const std::string& log_prob_sums, const std::string& weights,
                         int64_t classes, double smoothing);
  // The losses and weights of `loss`'s labels, each times `share`, as `prefix` + "loss" and "weights".
  absl::Status AddPart(const Comparison& loss, const std::string& share, Beside beside, const std::string& prefix);

  // `rows`, a value per label, as a value per sample and label.
  absl::StatusOr<std::string> PerSample(const std::string& rows);

  // The mask per label.
  absl::StatusOr<std::string> MaskOfRows(int64_t rows);

  // A target of shape [N] for predictions [N, 1], and one of [N, 1] for [N].
  absl::StatusOr<std::string> FitTarget(const std::string& prediction, const std::string& target);

  // Labels of shape [N, 1] for scores [N, classes], as [N].
  absl::StatusOr<std::string> FitLabels(const std::string& scores, const std::string& labels);

  // A value as `shape`, under a name of its own.
  absl::StatusOr<std::string> Reshaped(const std::string& value, const char* name, const Shape& shape);

  Graph* graph_;
  int64_t batch_;
};

absl::StatusOr<std::string> LossWriter::FitTarget(const std::string& prediction, const std::string& target) {
  const Shape want = Info(prediction).shape;
  const Shape have = Info(target).shape;
  const bool widens = have.size() == 1 && want == Shape{have[0], 1};
  const bool narrows = want.size() == 1 && have == Shape{want[0], 1};
  if (!widens && !narrows) return target;
  return Reshaped(target, "target", want);
}

absl::StatusOr<std::string> LossWriter::FitLabels(const std::string& scores, const std::string& labels) {
  const Shape want = Info(scores).shape;
  if (want.size() != 2 || Info(labels).shape != Shape{want[0], 1}) return labels;
  return Reshaped(labels, "labels", {want[0]});
}

absl::StatusOr<std::string> LossWriter::Reshaped(const std::string& value, const char* name, const Shape& shape) {
  const std::string reshaped = absl::StrCat(kPrefix, name);
  LS_RETURN_IF_ERROR(Add(OpType::kReshape, {value}, {reshaped}, ReshapeAttributes{shape, true}));
  return reshaped;
}

absl::Status LossWriter::UseRows(Comparison* loss) {
  const Shape scores = Info(loss->inputs[0]).shape;
  const Shape labels = Info(loss->inputs[1]).shape;
  if (scores.size() == 2) return absl::OkStatus();
  const int64_t rows = NumElements(labels);
  const std::string names[] = {absl::StrCat(kPrefix, "scores"), absl::StrCat(kPrefix, "labels")};
  LS_RETURN_IF_ERROR(
      Add(OpType::kReshape, {loss->inputs[0]}, {names[0]}, ReshapeAttributes{{rows, scores.back()}, true}));
  LS_RETURN_IF_ERROR(Add(OpType::kReshape, {loss->inputs[1]}, {names[1]}, ReshapeAttributes{{rows}, true}));
  loss->inputs[0] = names[0];
  loss->inputs[1] = names[1];
  return absl::OkStatus();
}

absl::StatusOr<Comparison> LossWriter::FromRule(const LossRule& rule, const std::string& output) {
  Comparison loss;
  loss.inputs = {output, rule.label};
  if (rule.kind == LossKind::kSoftmaxCrossEntropy) {
    loss.cross_entropy.ignore_index = rule.ignore_index;
    loss.cross_entropy.dtype = Info(output).dtype;
    if (!rule.class_weights.empty()) {
      const std::string name = absl::StrCat(kPrefix, "class_weights");
      const int64_t classes = static_cast<int64_t>(rule.class_weights.size());
      AppendConstant(graph_, name, ScalarsOf(Info(output).dtype, {classes}, rule.class_weights));
      loss.inputs.push_back(name);
    }
    if (rule.classes_last) LS_RETURN_IF_ERROR(UseRows(&loss));
    LS_ASSIGN_OR_RETURN(loss.inputs[1], FitLabels(loss.inputs[0], loss.inputs[1]));
    return loss;
  }
  loss.op = OpType::kPointwiseLoss;
  loss.pointwise.delta = rule.huber_delta;
  switch (rule.kind) {
    case LossKind::kMse:
      loss.pointwise.kind = PointwiseLossKind::kMse;
      break;
    case LossKind::kL1:
      loss.pointwise.kind = PointwiseLossKind::kL1;
      break;
    case LossKind::kHuber:
      loss.pointwise.kind = PointwiseLossKind::kHuber;
      break;
    case LossKind::kBceWithLogits:
      loss.pointwise.kind = PointwiseLossKind::kBceWithLogits;
      break;
    case LossKind::kSoftmaxCrossEntropy:
    case LossKind::kGraphOutput:
      return absl::InternalError("the loss does not compare element by element");
  }
  LS_ASSIGN_OR_RETURN(loss.inputs[1], FitTarget(output, rule.label));
  return loss;
}

absl::StatusOr<Comparison> LossWriter::FromScalar(const std::string& output) {
  const ValueInfo& info = Info(output);
  if (!IsFloating(info.dtype) || NumElements(info.shape) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("the loss '", output, "' is ", DTypeName(info.dtype), " ",
                                                   ShapeString(info.shape),
                                                   "; a loss is one floating-point number. Take its mean in the "
                                                   "model, or name a loss in the job file"));
  }
  Comparison loss;
  for (const Node& node : graph_->nodes) {
    if (node.outputs[0] != output) continue;
    const bool classes = ComparesClasses(node.op);
    if (!classes && node.op != OpType::kPointwiseLoss) return loss;
    loss.op = node.op;
    loss.inputs = node.inputs;
    if (classes) loss.cross_entropy = std::get<CrossEntropyAttributes>(node.attributes);
    if (!classes) loss.pointwise = std::get<PointwiseLossAttributes>(node.attributes);
    const Reduction reduction = classes ? loss.cross_entropy.reduction : loss.pointwise.reduction;
    if (reduction == Reduction::kSum) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodeLabel(node), ": sums over the batch, so the step would grow with it; use reduction mean"));
    }
    loss.cross_entropy.dtype = info.dtype;
  }
  return loss;
}

absl::Status LossWriter::AddLoss(const Comparison& loss, Reduction reduction, const std::string& value, Beside beside,
                                 const std::string& prefix) {
  if (!loss.has_classes()) {
    PointwiseLossAttributes attributes = loss.pointwise;
    attributes.reduction = reduction;
    return Add(OpType::kPointwiseLoss, loss.inputs, {value}, attributes);
  }
  CrossEntropyAttributes attributes = loss.cross_entropy;
  attributes.reduction = reduction;
  std::vector<std::string> outputs = {value};
  if (loss.op == OpType::kSoftmaxCrossEntropyLoss && beside == Beside::kLogProb) {
    outputs.push_back(absl::StrCat(prefix, "log_prob"));
  } else if (loss.op == OpType::kSoftmaxCrossEntropyLoss && beside == Beside::kStatistics) {
    outputs.insert(outputs.end(), {"", absl::StrCat(prefix, "statistics")});
  }
  return Add(loss.op, loss.inputs, std::move(outputs), attributes);
}

// Labels and class weights, if any: what LossWeights reads.
std::vector<std::string> WeightInputs(const Comparison& loss) { return {loss.inputs.begin() + 1, loss.inputs.end()}; }

absl::Status LossWriter::AddSpread(const std::string& hard, const std::string& log_prob_sums,
                                   const std::string& weights, int64_t classes, double smoothing) {
  const std::string names[] = {absl::StrCat(kPrefix, "counted"), absl::StrCat(kPrefix, "soft"),
                               absl::StrCat(kPrefix, "hard.scaled"), absl::StrCat(kPrefix, "soft.scaled")};
  const auto& [counted, soft, hard_share, soft_share] = names;
  LS_RETURN_IF_ERROR(Add(OpType::kMul, {log_prob_sums, weights}, {counted}));
  LS_RETURN_IF_ERROR(Add(OpType::kReduceSum, {counted}, {soft}, ReduceAttributes{{}, false, false}));
  LS_RETURN_IF_ERROR(Add(OpType::kScale, {hard}, {hard_share}, ScaleAttributes{1.0 - smoothing}));
  LS_RETURN_IF_ERROR(
      Add(OpType::kScale, {soft}, {soft_share}, ScaleAttributes{-smoothing / static_cast<double>(classes)}));
  return Add(OpType::kAdd, {hard_share, soft_share}, {kLossSum});
}

absl::Status LossWriter::AddSmoothed(const Comparison& loss, double smoothing) {
  const std::string names[] = {absl::StrCat(kPrefix, "hard"), absl::StrCat(kPrefix, "log_prob_sums"),
                               absl::StrCat(kPrefix, "weights")};
  const auto& [hard, sums, weights] = names;
  LS_RETURN_IF_ERROR(AddLoss(loss, Reduction::kSum, hard, Beside::kLogProb));
  LS_RETURN_IF_ERROR(
      Add(OpType::kReduceSum, {absl::StrCat(kPrefix, "log_prob")}, {sums}, ReduceAttributes{{1}, false, false}));
  CrossEntropyAttributes attributes = loss.cross_entropy;
  attributes.reduction = Reduction::kNone;
  LS_RETURN_IF_ERROR(Add(OpType::kLossWeights, {loss.inputs[1]}, {weights}, attributes));
  return AddSpread(hard, sums, weights, Info(loss.inputs[0]).shape[1], smoothing);
}

absl::Status LossWriter::AddPart(const Comparison& loss, const std::string& share, Beside beside,
                                 const std::string& prefix) {
  const std::string each = absl::StrCat(prefix, "each"), counted = absl::StrCat(prefix, "counted");
  LS_RETURN_IF_ERROR(AddLoss(loss, Reduction::kNone, each, beside, prefix));
  LS_RETURN_IF_ERROR(Add(OpType::kMul, {each, share}, {absl::StrCat(prefix, "loss")}));
  CrossEntropyAttributes attributes = loss.cross_entropy;
  attributes.reduction = Reduction::kNone;
  LS_RETURN_IF_ERROR(Add(OpType::kLossWeights, {loss.inputs[1]}, {counted}, attributes));
  return Add(OpType::kMul, {counted, share}, {absl::StrCat(prefix, "weights")});
}

absl::Status LossWriter::AddMixed(const Comparison& loss, double label_smoothing) {
  const ValueInfo scores = Info(loss.inputs[0]), labels = Info(loss.inputs[1]);
  if (batch_ < 2 || labels.shape != Shape{batch_}) {
    return absl::InvalidArgumentError(absl::StrCat("the labels of a pass are ", ShapeString(labels.shape),
                                                   ", and mixing (data.augment) is for ",
                                                   "passes of two samples and more with one label each"));
  }
  AppendInput(graph_, {kPartnerLabelInput, labels.dtype, labels.shape});
  AppendInput(graph_, {kShareInput, scores.dtype, {batch_}});
  const std::string names[] = {absl::StrCat(kPrefix, "one"),  absl::StrCat(kPrefix, "rest"),
                               absl::StrCat(kPrefix, "own."), absl::StrCat(kPrefix, "partner."),
                               absl::StrCat(kPrefix, "each"), absl::StrCat(kPrefix, "weights")};
  const auto& [one, rest, own, partner, each, weights] = names;
  AppendConstant(graph_, one, ScalarsOf(scores.dtype, {}, {1.0}));
  LS_RETURN_IF_ERROR(Add(OpType::kSub, {one, kShareInput}, {rest}));
  const bool smooth = label_smoothing > 0;
  LS_RETURN_IF_ERROR(AddPart(loss, kShareInput, smooth ? Beside::kLogProb : Beside::kStatistics, own));
  Comparison other = loss;
  other.inputs[1] = kPartnerLabelInput;
  LS_RETURN_IF_ERROR(AddPart(other, rest, Beside::kStatistics, partner));
  LS_RETURN_IF_ERROR(Add(OpType::kAdd, {own + "loss", partner + "loss"}, {each}));
  LS_RETURN_IF_ERROR(Add(OpType::kAdd, {own + "weights", partner + "weights"}, {weights}));
  const ReduceAttributes all{{}, false, false};
  const std::string hard = smooth ? absl::StrCat(kPrefix, "hard") : std::string(kLossSum);
  LS_RETURN_IF_ERROR(Add(OpType::kReduceSum, {each}, {hard}, all));
  LS_RETURN_IF_ERROR(Add(OpType::kReduceSum, {weights}, {kLossDenominator}, all));
  if (!smooth) return absl::OkStatus();
  const std::string sums = absl::StrCat(kPrefix, "log_prob_sums");
  LS_RETURN_IF_ERROR(Add(OpType::kReduceSum, {own + "log_prob"}, {sums}, ReduceAttributes{{1}, false, false}));
  return AddSpread(hard, sums, weights, scores.shape[1], label_smoothing);
}

absl::Status LossWriter::AddTraining(const Comparison& loss, double label_smoothing) {
  const bool smooth = loss.has_classes() && label_smoothing > 0;
  LS_RETURN_IF_ERROR(smooth ? AddSmoothed(loss, label_smoothing)
                            : AddLoss(loss, Reduction::kSum, kLossSum, Beside::kStatistics));
  if (!loss.has_classes()) {
    const ValueInfo& info = Info(loss.inputs[0]);
    return AddNumber(kLossDenominator, info.dtype, static_cast<double>(NumElements(info.shape)));
  }
  CrossEntropyAttributes attributes = loss.cross_entropy;
  attributes.reduction = Reduction::kSum;
  return Add(OpType::kLossWeights, WeightInputs(loss), {kLossDenominator}, attributes);
}

absl::Status LossWriter::AddWhole(const Comparison& loss, const std::string& output) {
  if (!loss.inputs.empty()) return AddTraining(loss, 0);
  const std::string scalar = absl::StrCat(kPrefix, "scalar");
  const DType dtype = Info(output).dtype;
  const double samples = static_cast<double>(batch_);
  LS_RETURN_IF_ERROR(Add(OpType::kReshape, {output}, {scalar}, ReshapeAttributes{{}, true}));
  LS_RETURN_IF_ERROR(Add(OpType::kScale, {scalar}, {kLossSum}, ScaleAttributes{samples}));
  return AddNumber(kLossDenominator, dtype, samples);
}

absl::StatusOr<std::string> LossWriter::PerSample(const std::string& rows) {
  const int64_t labels = NumElements(Info(rows).shape);
  if (Info(rows).shape[0] == batch_) return rows;
  const std::string name = absl::StrCat(rows, ".per_sample");
  LS_RETURN_IF_ERROR(Add(OpType::kReshape, {rows}, {name}, ReshapeAttributes{{batch_, labels / batch_}, true}));
  return name;
}

absl::StatusOr<std::string> LossWriter::MaskOfRows(int64_t rows) {
  if (rows == batch_) return std::string(kMaskInput);
  const std::string names[] = {absl::StrCat(kPrefix, "mask.column"), absl::StrCat(kPrefix, "mask.wide"),
                               absl::StrCat(kPrefix, "mask.rows")};
  LS_RETURN_IF_ERROR(Add(OpType::kReshape, {kMaskInput}, {names[0]}, ReshapeAttributes{{batch_, 1}, true}));
  LS_RETURN_IF_ERROR(Add(OpType::kExpand, {names[0]}, {names[1]}, ExpandAttributes{{batch_, rows / batch_}}));
  LS_RETURN_IF_ERROR(Add(OpType::kReshape, {names[1]}, {names[2]}, ReshapeAttributes{{rows}, true}));
  return names[2];
}

absl::Status LossWriter::AddEvaluation(const Comparison& loss) {
  const ValueInfo scores = Info(loss.inputs[0]);
  AppendInput(graph_, {kMaskInput, scores.dtype, {batch_}});
  const std::string each = absl::StrCat(kPrefix, "each");
  LS_RETURN_IF_ERROR(AddLoss(loss, Reduction::kNone, each, Beside::kNothing));
  LS_ASSIGN_OR_RETURN(const std::string losses, PerSample(each));
  LS_RETURN_IF_ERROR(Add(OpType::kMaskedSum, {losses, kMaskInput}, {kLossSum}));
  const std::string weights = absl::StrCat(kPrefix, "weights");
  if (!loss.has_classes()) {
    LS_RETURN_IF_ERROR(Add(OpType::kReduceSum, {kMaskInput}, {weights}, ReduceAttributes{{0}, false, false}));
    const int64_t per_sample = batch_ == 0 ? 0 : NumElements(scores.shape) / batch_;
    return Add(OpType::kScale, {weights}, {kLossDenominator}, ScaleAttributes{static_cast<double>(per_sample)});
  }
  CrossEntropyAttributes attributes = loss.cross_entropy;
  attributes.reduction = Reduction::kNone;
  LS_RETURN_IF_ERROR(Add(OpType::kLossWeights, WeightInputs(loss), {weights}, attributes));
  LS_ASSIGN_OR_RETURN(const std::string sample_weights, PerSample(weights));
  LS_RETURN_IF_ERROR(Add(OpType::kMaskedSum, {sample_weights, kMaskInput}, {kLossDenominator}));
  LS_ASSIGN_OR_RETURN(const std::string mask, MaskOfRows(scores.shape[0]));
  return Add(OpType::kCountCorrect, {loss.inputs[0], loss.inputs[1], mask}, {kCorrectCount, kTop5Count, kLabelCount},
             CountCorrectAttributes{loss.cross_entropy.ignore_index});
}

}  // namespace

bool ComparesClasses(OpType op) {
  return op == OpType::kSoftmaxCrossEntropyLoss || op == OpType::kNegativeLogLikelihoodLoss;
}

absl::Status AppendTrainingLoss(Graph* graph, const LossRule& rule, const std::string& output, int64_t batch) {
  LossWriter writer(graph, batch);
  if (rule.kind != LossKind::kGraphOutput) {
    LS_ASSIGN_OR_RETURN(const Comparison loss, writer.FromRule(rule, output));
    return rule.mixes_labels ? writer.AddMixed(loss, rule.label_smoothing)
                             : writer.AddTraining(loss, rule.label_smoothing);
  }
  LS_ASSIGN_OR_RETURN(const Comparison loss, writer.FromScalar(output));
  return writer.AddWhole(loss, output);
}

absl::StatusOr<bool> AppendEvaluationLoss(Graph* graph, const LossRule& rule, const std::string& output,
                                          int64_t batch) {
  LossWriter writer(graph, batch);
  const bool scalar = rule.kind == LossKind::kGraphOutput;
  LS_ASSIGN_OR_RETURN(const Comparison loss, scalar ? writer.FromScalar(output) : writer.FromRule(rule, output));
  const auto follows = [&](const std::string& value) {
    return writer.Info(value).shape[0] == batch || RowsFollowSamples(*graph, value, batch);
  };
  if (scalar && (loss.inputs.empty() || !follows(loss.inputs[0]) || !follows(loss.inputs[1]))) {
    LS_RETURN_IF_ERROR(writer.AddWhole(loss, output));
    return false;
  }
  LS_RETURN_IF_ERROR(writer.AddEvaluation(loss));
  return loss.has_classes();
}

}  // namespace lockstep
