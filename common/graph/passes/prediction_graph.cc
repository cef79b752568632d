#include "common/graph/passes/prediction_graph.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/graph_editor.h"
#include "common/graph/passes/countable.h"
#include "common/graph/passes/follow_batch.h"
#include "common/graph/passes/forms.h"
#include "common/graph/passes/fuse_attention.h"
#include "common/graph/passes/reduce_precision.h"
#include "common/graph/passes/serving_graph.h"
#include "common/graph/passes/split_einsums.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

bool IsLoss(const MetaGraph& metagraph, const std::string& output) {
  return metagraph.loss.kind == LossKind::kGraphOutput && output == metagraph.loss.output;
}

// The shape of the only output where the graph's batch is `batch`.
absl::StatusOr<Shape> OutputShape(Graph graph, int64_t batch) {
  BindBatch(&graph, batch);
  LS_RETURN_IF_ERROR(InferShapes(&graph));
  return graph.values.at(graph.outputs[0]).shape;
}

// InvalidArgument when the output has not one row per sample. A model that computes with one batch only is taken at its
// word; one that computes with others has to show there, too, that its rows follow the samples.
absl::Status CheckRows(const Graph& open, const std::string& output, int64_t batch) {
  LS_ASSIGN_OR_RETURN(const Shape shape, OutputShape(open, batch));
  bool rows = !shape.empty() && shape[0] == batch;
  if (const absl::StatusOr<Shape> next = OutputShape(open, batch + 1); rows && next.ok()) {
    rows = !next->empty() && (*next)[0] == batch + 1;
  }
  if (rows) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the output '", output, "' has the shape ", ShapeString(shape),
                                                 " for ", batch, " samples, which is not one row for each"));
}

void KeepReadInputs(Graph* graph) {
  std::set<std::string> read;
  for (const Node& node : graph->nodes) read.insert(node.inputs.begin(), node.inputs.end());
  std::erase_if(graph->inputs, [&](const GraphInput& input) { return read.count(input.name) == 0; });
}

}  // namespace

absl::StatusOr<std::string> ChoosePrediction(const MetaGraph& metagraph, const std::string& asked) {
  std::vector<std::string> outputs = metagraph.forward.outputs;
  std::erase_if(outputs, [&](const std::string& output) { return IsLoss(metagraph, output); });
  const auto is_there = [&](const std::string& name) {
    return std::find(outputs.begin(), outputs.end(), name) != outputs.end();
  };
  if (!asked.empty() && is_there(asked)) return asked;
  if (outputs.empty()) {
    return absl::InvalidArgumentError(
        "the model has no output but its loss; export it with what it predicts as an output, too");
  }
  if (!asked.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has no output '", asked, "'; it has ", absl::StrJoin(outputs, ", ")));
  }
  return is_there(metagraph.loss.output) ? metagraph.loss.output : outputs[0];
}

absl::StatusOr<Graph> MakePredictionGraph(const MetaGraph& metagraph, const std::string& output, int64_t batch) {
  if (const int64_t only = OnlyBatch(metagraph.forward); only != 0 && only != batch) {
    return absl::InvalidArgumentError(absl::StrCat("the model computes with the number of samples in a batch, and was ",
                                                   "made for ", only, ", not ", batch));
  }
  MetaGraph one = metagraph;
  one.forward.outputs = {output};
  Graph graph = MakeServingGraph(one);
  if (metagraph.pass_batch > 0 && batch != metagraph.pass_batch) FollowOtherBatch(&graph, metagraph.pass_batch, batch);
  FeedRandomNumbers(&graph);
  KeepReadInputs(&graph);
  for (const SignatureInput& input : metagraph.signature) {
    const auto is_it = [&](const GraphInput& i) { return i.name == input.name; };
    if (input.role == InputRole::kLabel && std::any_of(graph.inputs.begin(), graph.inputs.end(), is_it)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the output '", output, "' depends on the labels; choose another one"));
    }
  }
  const absl::Status rows = CheckRows(graph, output, batch);
  if (!rows.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("with a batch of ", batch, ": ", rows.message()));
  }
  BindBatch(&graph, batch);
  LS_RETURN_IF_ERROR(InferShapes(&graph));
  MakeRandomShapesExplicit(&graph);
  LS_RETURN_IF_ERROR(SplitEinsums(&graph));
  FuseAttention(&graph);
  if (metagraph.precision == Precision::kBf16) LS_RETURN_IF_ERROR(ReducePrecision(&graph));
  RemoveDeadCode(&graph);
  LS_RETURN_IF_ERROR(CheckCountable(graph));
  return graph;
}

}  // namespace lockstep
