// What of a model's state dict goes into the state although no node of the graph reads it.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/state_names.h"
#include "common/status/status_macros.h"

namespace lockstep {
// Parameters and buffers that the file holds and no node reads come home as they went.
absl::Status OnnxImporter::KeepUnread() {
  for (const auto& [name, initializer] : initializers_) {
    const bool buffer = signature_.buffers.count(name) != 0 || (!has_signature_ && quantisers_.count(name) != 0);
    if ((!initializer.parameter && !buffer) || HasVariable(model_.graph, name)) continue;
    LS_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(*initializer.message));
    if (initializer.parameter && !buffer) {
      // Where the file does not say what its parameters are, an initialiser that was folded was none.
      if (!has_signature_) continue;
      model_.warnings.push_back(absl::StrCat("parameter '", name, "' has no influence and is not trained"));
    }
    LS_RETURN_IF_ERROR(AddVariable(name, VariableKind::kFrozen, std::move(tensor)));
    if (initializer.parameter) model_.notes.parameters.insert(name);
  }
  return absl::OkStatus();
}

// PyTorch counts the batches that a batch normalisation has seen; its exporters drop the counts.
void OnnxImporter::AddStepCounts() {
  std::set<std::string> counts;
  for (const std::string& buffer : signature_.buffers) {
    if (absl::EndsWith(buffer, kStepCountSuffix)) counts.insert(buffer);
  }
  if (!has_signature_ && from_pytorch_) {
    for (const Variable& variable : model_.graph.variables) {
      absl::string_view name = variable.name;
      if (variable.kind != VariableKind::kParameter && absl::ConsumeSuffix(&name, "running_mean")) {
        counts.insert(absl::StrCat(name, kStepCountSuffix));
      }
    }
  }
  std::set<std::string> moving;
  for (const Variable& variable : model_.graph.variables) {
    absl::string_view name = variable.name;
    if (variable.kind == VariableKind::kStatistic && absl::ConsumeSuffix(&name, "running_mean")) {
      moving.insert(absl::StrCat(name, kStepCountSuffix));
    }
  }
  for (const std::string& name : counts) {
    if (HasVariable(model_.graph, name)) continue;
    if (moving.count(name) == 0) {
      model_.graph.variables.push_back({name, DType::kI64, {}, VariableKind::kFrozen, {}});
    } else {
      model_.aliases.push_back({name, kStepCounterName});
    }
  }
}

}  // namespace lockstep
