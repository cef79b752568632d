#include "common/graph/passes/training_graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/graph/differentiate.h"
#include "common/graph/graph_editor.h"
#include "common/graph/moved_statistics.h"
#include "common/graph/ops/schema.h"
#include "common/graph/passes/countable.h"
#include "common/graph/passes/follow_batch.h"
#include "common/graph/passes/forms.h"
#include "common/graph/passes/fuse_attention.h"
#include "common/graph/passes/fuse_norm_gradients.h"
#include "common/graph/passes/join_products.h"
#include "common/graph/passes/loss.h"
#include "common/graph/passes/reduce_precision.h"
#include "common/graph/passes/samples_apart.h"
#include "common/graph/passes/split_einsums.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// Where the loss rule's output stands among the graph's outputs, so that it is found again after passes.
absl::StatusOr<size_t> LossPosition(const MetaGraph& metagraph) {
  const std::vector<std::string>& outputs = metagraph.forward.outputs;
  const auto found = std::find(outputs.begin(), outputs.end(), metagraph.loss.output);
  if (found == outputs.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the loss reads '", metagraph.loss.output, "', which is not an output of the model"));
  }
  return static_cast<size_t>(found - outputs.begin());
}

// Gives the gradient the name under which it leaves the graph. A value that already has a public name, or that no node
// produces, is copied.
absl::Status PublishGradient(Graph* graph, const std::string& gradient, const std::string& name) {
  const bool own = absl::StartsWith(gradient, "lockstep.grad") && gradient != kGradientSeed;
  if (own) {
    RenameValue(graph, gradient, name);
    return absl::OkStatus();
  }
  return AppendNode(graph, {name, OpType::kScale, {gradient}, {name}, ScaleAttributes{1.0}});
}

absl::Status AddGradients(Graph* graph) {
  std::vector<std::string> parameters;
  for (const Variable& variable : graph->variables) {
    if (variable.kind == VariableKind::kParameter) parameters.push_back(variable.name);
  }
  LS_ASSIGN_OR_RETURN(std::vector<std::string> gradients, Differentiate(graph, kLossSum, parameters));
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (gradients[i].empty()) {
      return absl::InvalidArgumentError(absl::StrCat("the loss does not depend on parameter '", parameters[i],
                                                     "'. Take it out of what is trained, or use it in the model"));
    }
    const std::string name = GradientName(parameters[i]);
    LS_RETURN_IF_ERROR(PublishGradient(graph, gradients[i], name));
    // Another parameter may share this gradient.
    std::replace(gradients.begin() + static_cast<std::ptrdiff_t>(i) + 1, gradients.end(), std::string(gradients[i]),
                 name);
    graph->outputs.push_back(name);
  }
  return absl::OkStatus();
}

// The statistics that the graph computes itself are outputs of it, beside those of batch normalisations.
absl::Status AddMoved(const MetaGraph& metagraph, TrainingGraph* training) {
  const Graph& graph = training->graph;
  for (const std::string& variable : MovedStatistics(metagraph.forward)) {
    const std::string value = MovedValueName(variable);
    const auto found = graph.values.find(value);
    if (found == graph.values.end()) {
      return absl::InvalidArgumentError(absl::StrCat("the buffer '", variable, "' would become '", value,
                                                     "', the output of a Dropout that drops nothing and is left out; "
                                                     "keep it as it is with model.constant_buffers"));
    }
    const ValueInfo& becomes = found->second;
    if (becomes != graph.values.at(variable)) {
      return absl::InvalidArgumentError(absl::StrCat("the buffer '", variable, "' would become ",
                                                     DTypeName(becomes.dtype), ShapeString(becomes.shape),
                                                     "; keep it as it is with model.constant_buffers"));
    }
    training->statistics.push_back({variable, value, 0.0});
  }
  return absl::OkStatus();
}

}  // namespace

std::string GradientName(absl::string_view parameter) { return absl::StrCat("grad.", parameter); }

absl::StatusOr<TrainingGraph> MakeTrainingGraph(const MetaGraph& metagraph) {
  LS_ASSIGN_OR_RETURN(const size_t position, LossPosition(metagraph));
  TrainingGraph training;
  training.graph = metagraph.forward;
  Graph* graph = &training.graph;
  LS_ASSIGN_OR_RETURN(TrainingForms forms, UseTrainingForms(graph));
  training.statistics = std::move(forms.statistics);
  BindBatch(graph, metagraph.pass_batch);
  LS_RETURN_IF_ERROR(InferShapes(graph));
  MakeRandomShapesExplicit(graph);
  LS_RETURN_IF_ERROR(SplitEinsums(graph));
  LS_RETURN_IF_ERROR(AppendTrainingLoss(graph, metagraph.loss, graph->outputs[position], metagraph.pass_batch));
  LS_RETURN_IF_ERROR(AddMoved(metagraph, &training));
  const std::vector<std::string> losses = {kLossSum, kLossDenominator};
  graph->outputs = losses;
  for (const std::string& moved : MovedStatistics(metagraph.forward)) graph->outputs.push_back(MovedValueName(moved));
  FuseAttention(graph);
  if (metagraph.precision == Precision::kBf16) LS_RETURN_IF_ERROR(ReducePrecision(graph));
  graph->outputs = losses;
  LS_RETURN_IF_ERROR(AddGradients(graph));
  LS_RETURN_IF_ERROR(JoinProducts(graph).status());
  FuseNormGradients(graph);
  for (const StatisticUpdate& statistic : training.statistics) graph->outputs.push_back(statistic.value);
  RemoveDeadCode(graph);
  LS_RETURN_IF_ERROR(CheckCountable(*graph));
  return training;
}

absl::StatusOr<EvaluationGraph> MakeEvaluationGraph(const MetaGraph& metagraph, int64_t batch) {
  LS_ASSIGN_OR_RETURN(const size_t position, LossPosition(metagraph));
  EvaluationGraph evaluation;
  const int64_t only = OnlyBatch(metagraph.forward);
  if (only != 0 && only != batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model computes with the number of samples in a batch, and was made for ", only));
  }
  evaluation.graph = metagraph.forward;
  Graph* graph = &evaluation.graph;
  if (metagraph.pass_batch > 0 && batch != metagraph.pass_batch) FollowOtherBatch(graph, metagraph.pass_batch, batch);
  UseEvaluationForms(graph);
  FeedRandomNumbers(graph);
  BindBatch(graph, batch);
  LS_RETURN_IF_ERROR(InferShapes(graph));
  MakeRandomShapesExplicit(graph);
  LS_RETURN_IF_ERROR(SplitEinsums(graph));
  LS_ASSIGN_OR_RETURN(evaluation.has_accuracy,
                      AppendEvaluationLoss(graph, metagraph.loss, graph->outputs[position], batch));
  graph->outputs = {kLossSum, kLossDenominator};
  if (evaluation.has_accuracy) graph->outputs.insert(graph->outputs.end(), {kCorrectCount, kTop5Count, kLabelCount});
  FuseAttention(graph);
  if (metagraph.precision == Precision::kBf16) LS_RETURN_IF_ERROR(ReducePrecision(graph));
  RemoveDeadCode(graph);
  LS_RETURN_IF_ERROR(CheckCountable(*graph));
  evaluation.samples_apart = only == 0 && SamplesAreApart(*graph, batch);
  return evaluation;
}

absl::StatusOr<std::optional<EvaluationGraph>> MakeRestGraph(const MetaGraph& metagraph, const EvaluationGraph& full,
                                                             int64_t batch, int64_t samples) {
  const int64_t rest = samples % batch;
  if (rest == 0 || full.samples_apart) return std::nullopt;
  absl::StatusOr<EvaluationGraph> made = MakeEvaluationGraph(metagraph, rest);
  if (made.ok()) return *std::move(made);
  return absl::Status(
      made.status().code(),
      absl::StrCat("the last pass has ", rest, " of ", samples, " samples, no others can fill it up, and the model ",
                   "does not compute with so few: ", made.status().message(), ". Evaluate a multiple of ", batch,
                   " samples, or choose train.micro_batch so that it divides them"));
}

}  // namespace lockstep
