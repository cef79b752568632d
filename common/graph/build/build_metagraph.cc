#include "common/graph/build/build_metagraph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/graph/graph_editor.h"
#include "common/graph/parameter_patterns.h"
#include "common/graph/passes/training_graph.h"
#include "common/graph/training_account.h"
#include "common/graph/validate.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

std::vector<const SignatureInput*> WithRole(const MetaGraphRequest& request, InputRole role) {
  std::vector<const SignatureInput*> found;
  for (const SignatureInput& input : request.inputs) {
    if (input.role == role) found.push_back(&input);
  }
  return found;
}

std::string NamesOf(const std::vector<const SignatureInput*>& inputs) {
  return absl::StrJoin(
      inputs, ", ", [](std::string* out, const SignatureInput* input) { absl::StrAppend(out, "'", input->name, "'"); });
}

// The features in the order of the imported graph's inputs. InvalidArgument when one is missing, left over or of
// another form.
absl::Status MatchFeatures(const Graph& imported, const std::vector<const SignatureInput*>& features,
                           std::vector<SignatureInput>* signature) {
  for (const GraphInput& input : imported.inputs) {
    const auto found =
        std::find_if(features.begin(), features.end(), [&](const auto* given) { return given->name == input.name; });
    if (found == features.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model's input '", input.name, "' is fed by nothing: the data gives ", NamesOf(features)));
    }
    const SignatureInput& feature = **found;
    if (input.dtype != feature.dtype || input.shape != feature.shape) {
      return absl::InvalidArgumentError(absl::StrCat("the model's input '", input.name, "' is ", DTypeName(input.dtype),
                                                     ShapeString(input.shape), " (-1: the batch), the data gives ",
                                                     DTypeName(feature.dtype), ShapeString(feature.shape)));
    }
    signature->push_back(feature);
  }
  if (features.size() != imported.inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the data gives ", NamesOf(features), ", and the model has only ",
                                                   imported.inputs.size(), " of these inputs"));
  }
  return absl::OkStatus();
}

// Whether the scores' last dimension are the classes. InvalidArgument when both dimensions could be meant.
absl::StatusOr<bool> ClassesLast(const MetaGraph& metagraph, ClassAxis axis) {
  if (metagraph.loss.kind != LossKind::kSoftmaxCrossEntropy || axis == ClassAxis::kSecond) return false;
  Graph bound = metagraph.forward;
  BindBatch(&bound, metagraph.pass_batch);
  LS_RETURN_IF_ERROR(InferShapes(&bound));
  const auto scores = bound.values.find(metagraph.loss.output);
  const auto labels = bound.values.find(metagraph.loss.label);
  if (scores == bound.values.end() || labels == bound.values.end()) return false;  // validation says so
  const Shape& shape = scores->second.shape;
  if (shape.size() < 3) return false;
  const bool last = labels->second.shape == Shape(shape.begin(), shape.end() - 1);
  if (axis == ClassAxis::kLast) {
    if (last) return true;
    return absl::InvalidArgumentError(absl::StrCat(
        "model.class_axis is last, and the labels ", ShapeString(labels->second.shape), " do not have the shape of '",
        metagraph.loss.output, "' ", ShapeString(shape), " without its last dimension"));
  }
  Shape without_second = shape;
  without_second.erase(without_second.begin() + 1);
  if (last && labels->second.shape == without_second) {
    return absl::InvalidArgumentError(absl::StrCat("the classes may be the second or the last dimension of '",
                                                   metagraph.loss.output, "' ", ShapeString(shape),
                                                   "; say which with model.class_axis: second or last"));
  }
  return last;
}

// What PyTorch's state dict of a built-in model has beside its variables.
std::vector<StateAlias> AliasesOf(const Graph& builtin) {
  std::vector<StateAlias> aliases;
  for (const Variable& variable : builtin.variables) {
    absl::string_view name = variable.name;
    if (absl::ConsumeSuffix(&name, "running_mean")) {
      aliases.push_back({absl::StrCat(name, "num_batches_tracked"), kStepCounterName});
    }
    if (name == "transformer.wte.weight") aliases.push_back({"lm_head.weight", variable.name});
  }
  return aliases;
}

// The groups with the names of their parameters. InvalidArgument for one that is left without any.
absl::StatusOr<std::vector<ParameterGroup>> ResolveGroups(const Graph& graph,
                                                          const std::vector<ParameterGroup>& groups) {
  std::vector<ParameterGroup> resolved;
  std::set<std::string> taken;
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string key = absl::StrCat("train.optimizer.groups[", i, "].parameters");
    LS_ASSIGN_OR_RETURN(const std::set<std::string> matched, MatchParameters(graph, groups[i].parameters, key));
    ParameterGroup group = groups[i];
    group.parameters.clear();
    for (const std::string& name : matched) {
      if (taken.insert(name).second) group.parameters.push_back(name);
    }
    if (group.parameters.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, ": groups before it name all of its parameters; the first group that names one counts"));
    }
    resolved.push_back(std::move(group));
  }
  return resolved;
}

}  // namespace

absl::StatusOr<MetaGraph> BuildMetaGraph(const MetaGraphRequest& request) {
  const std::vector<const SignatureInput*> features = WithRole(request, InputRole::kFeature);
  const std::vector<const SignatureInput*> labels = WithRole(request, InputRole::kLabel);
  const size_t needed = request.loss.kind == LossKind::kGraphOutput ? 0 : 1;
  if (features.empty() || labels.size() > 1 || labels.size() < needed) {
    return absl::InvalidArgumentError(absl::StrCat("a model needs inputs and one label; the data gives the inputs ",
                                                   NamesOf(features), " and the labels ", NamesOf(labels)));
  }
  MetaGraph metagraph;
  if (request.imported.has_value()) {
    metagraph.forward = *request.imported;
    LS_RETURN_IF_ERROR(MatchFeatures(*request.imported, features, &metagraph.signature));
  } else {
    if (features.size() != 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("model '", request.model.architecture, "' takes one input, not ", NamesOf(features)));
    }
    metagraph.signature = {*features[0]};
    LS_ASSIGN_OR_RETURN(metagraph.forward,
                        BuildArchitecture(request.model, {features[0]->name, features[0]->dtype, features[0]->shape}));
  }
  metagraph.loss = request.loss;
  if (metagraph.loss.output.empty()) metagraph.loss.output = metagraph.forward.outputs[0];
  if (!labels.empty()) {
    SignatureInput label = *labels[0];
    label.name = FreshName(metagraph.forward, label.name);
    metagraph.forward.inputs.push_back({label.name, label.dtype, label.shape});
    metagraph.signature.push_back(label);
    if (metagraph.loss.label.empty()) metagraph.loss.label = label.name;
  }
  LS_RETURN_IF_ERROR(ChooseTrained(&metagraph.forward, request.trainable, request.frozen));
  LS_RETURN_IF_ERROR(FreezeDetachedParameters(metagraph.loss.output, &metagraph.forward));
  metagraph.update = request.update;
  LS_ASSIGN_OR_RETURN(const std::set<std::string> no_decay,
                      MatchParameters(metagraph.forward, request.no_decay, "train.optimizer.no_decay"));
  metagraph.update.optimizer.no_decay.assign(no_decay.begin(), no_decay.end());
  LS_ASSIGN_OR_RETURN(metagraph.update.optimizer.groups, ResolveGroups(metagraph.forward, request.groups));
  metagraph.aliases = request.imported.has_value() ? request.aliases : AliasesOf(metagraph.forward);
  metagraph.pass_batch = request.pass_batch;
  metagraph.precision = request.precision;
  LS_RETURN_IF_ERROR(ValidateMetaGraph(metagraph));
  LS_ASSIGN_OR_RETURN(metagraph.loss.classes_last, ClassesLast(metagraph, request.class_axis));
  const absl::Status training = MakeTrainingGraph(metagraph).status();
  if (absl::IsInvalidArgument(training)) {
    return absl::InvalidArgumentError(
        absl::StrCat(training.message(),
                     ". The model, its loss and the labels have to fit: change `model` (its classes or outputs), "
                     "`model.loss`, or the labels of `data.train`"));
  }
  LS_RETURN_IF_ERROR(training);
  return metagraph;
}

}  // namespace lockstep
