#include "common/graph/build/check_trainable.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/metagraph.h"
#include "common/graph/parameter_patterns.h"
#include "common/graph/passes/training_graph.h"
#include "common/graph/training_account.h"
#include "common/graph/validate.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::Status CheckVariableTypes(const Graph& forward) {
  for (const Variable& variable : forward.variables) {
    if (variable.dtype == DType::kF32 || !IsFloating(variable.dtype)) continue;
    return absl::InvalidArgumentError(absl::StrCat("the model's '", variable.name, "' is of type ",
                                                   DTypeName(variable.dtype),
                                                   "; weights and statistics are trained in F32. Export the model "
                                                   "in float32 (`model.float()` in PyTorch)"));
  }
  return absl::OkStatus();
}

absl::Status CheckTrainable(const Graph& forward, int64_t batch) {
  LS_RETURN_IF_ERROR(ValidateForwardGraph(forward));
  LS_RETURN_IF_ERROR(CheckVariableTypes(forward));
  Graph bound = forward;
  BindBatch(&bound, batch);
  LS_RETURN_IF_ERROR(InferShapes(&bound));
  MetaGraph metagraph;
  metagraph.forward = forward;
  metagraph.pass_batch = batch;
  metagraph.loss.kind = LossKind::kGraphOutput;
  Graph& graph = metagraph.forward;
  std::string& loss = metagraph.loss.output;  // the means of all outputs, added up
  const auto append = [&graph](OpType op, std::vector<std::string> inputs, OpAttributes attributes) {
    const std::string name = FreshName(graph, "mean");
    graph.nodes.push_back({name, op, std::move(inputs), {name}, std::move(attributes)});
    return name;
  };
  for (const std::string& output : forward.outputs) {
    if (bound.values.at(output).dtype != DType::kF32) continue;
    const std::string mean = append(OpType::kReduceMean, {output}, ReduceAttributes{{}, false, false});
    loss = loss.empty() ? mean : append(OpType::kAdd, {loss, mean}, NoAttributes{});
  }
  if (loss.empty()) {
    return absl::InvalidArgumentError("no output of the model is float32, so no loss can be made of them");
  }
  graph.outputs.push_back(loss);
  LS_RETURN_IF_ERROR(ChooseTrained(&graph, {}, {}));
  LS_RETURN_IF_ERROR(FreezeDetachedParameters(loss, &graph));
  return MakeTrainingGraph(metagraph).status();
}

}  // namespace lockstep
