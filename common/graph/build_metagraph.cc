#include "common/graph/build_metagraph.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/training_graph.h"
#include "common/graph/validate.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// The only input with the role, or InvalidArgument.
absl::StatusOr<const SignatureInput*> OnlyInput(const MetaGraphRequest& request, InputRole role, const char* what) {
  const SignatureInput* found = nullptr;
  for (const SignatureInput& input : request.inputs) {
    if (input.role != role) continue;
    if (found != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("model '", request.model.architecture, "' takes one ", what,
                                                     ", but both '", found->name, "' and '", input.name,
                                                     "' are given"));
    }
    found = &input;
  }
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", request.model.architecture, "' needs a ", what, ", and the data gives none"));
  }
  return found;
}

// The imported graph, whose only input takes the feature. InvalidArgument when it takes something else.
absl::StatusOr<Graph> CheckImported(const Graph& imported, const SignatureInput& feature) {
  if (imported.inputs.size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat("the model has ", imported.inputs.size(),
                                                   " inputs; one that takes the data's inputs is supported"));
  }
  const GraphInput& input = imported.inputs[0];
  if (input.dtype != feature.dtype || input.shape != feature.shape) {
    return absl::InvalidArgumentError(absl::StrCat("the model's input '", input.name, "' is ", DTypeName(input.dtype),
                                                   ShapeString(input.shape), " (-1: the batch), the data gives ",
                                                   DTypeName(feature.dtype), ShapeString(feature.shape)));
  }
  return imported;
}

}  // namespace

absl::StatusOr<MetaGraph> BuildMetaGraph(const MetaGraphRequest& request) {
  LS_ASSIGN_OR_RETURN(const SignatureInput* feature, OnlyInput(request, InputRole::kFeature, "feature"));
  LS_ASSIGN_OR_RETURN(const SignatureInput* label, OnlyInput(request, InputRole::kLabel, "label"));
  MetaGraph metagraph;
  if (request.imported.has_value()) {
    LS_ASSIGN_OR_RETURN(metagraph.forward, CheckImported(*request.imported, *feature));
  } else {
    LS_ASSIGN_OR_RETURN(metagraph.forward,
                        BuildArchitecture(request.model, {feature->name, feature->dtype, feature->shape}));
  }
  metagraph.forward.inputs.push_back({label->name, label->dtype, label->shape});
  metagraph.signature = {*feature, *label};
  metagraph.loss = request.loss;
  if (metagraph.loss.output.empty()) metagraph.loss.output = metagraph.forward.outputs[0];
  if (metagraph.loss.label.empty()) metagraph.loss.label = label->name;
  metagraph.update = request.update;
  metagraph.pass_batch = request.pass_batch;
  LS_RETURN_IF_ERROR(ValidateMetaGraph(metagraph));
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
