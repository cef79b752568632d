// What of a model's state dict goes into the state: which parameters are trained, what is kept although no node reads
// it, what exists under two names.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/node_fields.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr char kCount[] = "num_batches_tracked";

// The inputs of an op that are weights where they are initialisers.
std::vector<int> WeightInputs(const onnx::NodeProto& node) {
  static const auto* const kInputs = new std::map<std::string, std::vector<int>>({
      {"MatMul", {0, 1}},
      {"Gemm", {1, 2}},
      {"Conv", {1, 2}},
      {"ConvTranspose", {1, 2}},
      {"LayerNormalization", {1, 2}},
      {"RMSNormalization", {1}},
      {"InstanceNormalization", {1, 2}},
      {"GroupNormalization", {1, 2}},
      {"BatchNormalization", {1, 2}},
      {"PRelu", {1}},
      {"Gather", {0}},
      {"RNN", {1, 2, 3}},
      {"GRU", {1, 2, 3}},
      {"LSTM", {1, 2, 3, 7}},
      {"Add", {0, 1}},  // a bias: of rank 1
  });
  const auto found = kInputs->find(node.op_type());
  return found == kInputs->end() ? std::vector<int>() : found->second;
}

// How many names a warning lists.
constexpr size_t kShown = 8;

std::string ListOf(std::vector<std::string> names) {
  const size_t all = names.size();
  if (all > kShown) names.resize(kShown);
  return absl::StrCat(absl::StrJoin(names, ", "), all > kShown ? absl::StrCat(" and ", all - kShown, " more") : "");
}

bool HasVariable(const Graph& graph, const std::string& name) {
  return std::any_of(graph.variables.begin(), graph.variables.end(),
                     [&](const Variable& variable) { return variable.name == name; });
}

}  // namespace

// PyTorch's exporter as called plainly merges batch normalisations into weights and transposes others: these are
// initialisers of no parameter's name. What stands where weights stand is trained all the same.
void OnnxImporter::FindFoldedWeights() {
  const auto kept = [&](const std::string& name) { return initializers_.count(name) != 0; };
  if (!has_signature_ || std::all_of(parameters_.begin(), parameters_.end(), kept)) return;
  for (const onnx::NodeProto& node : nodes_.node()) {
    for (const int i : WeightInputs(node)) {
      if (i >= node.input_size()) continue;
      const auto found = initializers_.find(node.input(i));
      if (found == initializers_.end() || found->second.parameter || buffers_.count(found->first) != 0) continue;
      const onnx::TensorProto& tensor = *found->second.message;
      const bool weight = node.op_type() == "Add" ? tensor.dims_size() == 1 : tensor.dims_size() > 0;
      if (!weight || !IsFloatingType(tensor.data_type())) continue;
      found->second.parameter = true;
      folded_weights_.push_back(found->first);
    }
  }
}

// Parameters and buffers that the file holds and no node reads come home as they went.
absl::Status OnnxImporter::KeepUnread() {
  for (const auto& [name, initializer] : initializers_) {
    const bool buffer = buffers_.count(name) != 0;
    if ((!initializer.parameter && !buffer) || HasVariable(model_.graph, name)) continue;
    LS_ASSIGN_OR_RETURN(Tensor tensor, ReadOnnxTensor(*initializer.message, folder_));
    if (initializer.parameter && !buffer) {
      // Where the file does not say what its parameters are, an initialiser that was folded was none.
      if (!has_signature_) continue;
      model_.warnings.push_back(absl::StrCat("parameter '", name, "' has no influence and is not trained"));
    }
    LS_RETURN_IF_ERROR(AddVariable(name, VariableKind::kFrozen, std::move(tensor)));
  }
  return absl::OkStatus();
}

// PyTorch counts the batches that a batch normalisation has seen; its exporters drop the counts.
void OnnxImporter::AddStepCounts() {
  std::set<std::string> counts;
  for (const std::string& buffer : buffers_) {
    if (absl::EndsWith(buffer, kCount)) counts.insert(buffer);
  }
  if (!has_signature_ && from_pytorch_) {
    for (const Variable& variable : model_.graph.variables) {
      absl::string_view name = variable.name;
      if (variable.kind != VariableKind::kParameter && absl::ConsumeSuffix(&name, "running_mean")) {
        counts.insert(absl::StrCat(name, kCount));
      }
    }
  }
  for (const std::string& name : counts) {
    if (HasVariable(model_.graph, name)) continue;
    if (options_.freeze_batch_norm) {
      model_.graph.variables.push_back({name, DType::kI64, {}, VariableKind::kFrozen, {}});
    } else {
      model_.aliases.push_back({name, kStepCounterName});
    }
  }
}

absl::Status OnnxImporter::AddTied() {
  for (const auto& [second, first] : options_.tied) {
    if (!HasVariable(model_.graph, first)) {
      return absl::InvalidArgumentError(absl::StrCat("model.tied: the file has no parameter '", first, "'"));
    }
    if (HasVariable(model_.graph, second)) {
      return absl::InvalidArgumentError(absl::StrCat("model.tied: the file has a parameter '", second,
                                                     "' of its own, so it is not tied to '", first, "'"));
    }
    model_.aliases.push_back({second, first});
  }
  std::vector<std::string> lost;
  for (const std::string& name : parameters_) {
    if (initializers_.count(name) == 0 && options_.tied.count(name) == 0) lost.push_back(name);
  }
  // Weight and bias of a batch normalisation that is gone, with its statistics.
  const auto merged_norm = [&](absl::string_view name) -> std::string {
    const std::string norm(name.substr(0, name.rfind('.')));
    const std::string mean = absl::StrCat(norm, ".running_mean");
    return buffers_.count(mean) != 0 && initializers_.count(mean) == 0 ? norm : "";
  };
  std::set<std::string> merged;
  for (const std::string& name : lost) merged.insert(merged_norm(name));
  merged.erase("");
  std::erase_if(lost, [&](const std::string& name) { return !merged_norm(name).empty(); });
  if (!merged.empty()) {
    model_.warnings.push_back(absl::StrCat("the exporter merged the batch normalisations ",
                                           ListOf({merged.begin(), merged.end()}),
                                           " into other weights by their statistics: they normalise no more, and what "
                                           "is trained is another model. ",
                                           kExportCall, " keeps them"));
  }
  if (!folded_weights_.empty()) {
    model_.warnings.push_back(absl::StrCat("the exporter folded ", lost.size(), " parameters (", ListOf(lost),
                                           ") into weights of other names (", ListOf(folded_weights_),
                                           "), which are trained instead: the original model will not take them back. ",
                                           kExportCall, " keeps every name"));
    return absl::OkStatus();
  }
  for (const std::string& name : lost) {
    model_.warnings.push_back(
        absl::StrCat("parameter '", name,
                     "' has no values in the file: it is tied to another, and checkpoints will lack its name. "
                     "Write both with model.tied: {",
                     name, ": NAME-OF-THE-OTHER}"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
