// Parameters that the signature names and the file has no values for: second names of tied ones, those that no node
// uses, and those that the exporter folded into weights of other names.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/node_fields.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

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

template <typename Names>
std::string ListOf(const Names& all) {
  std::vector<std::string> names(all.begin(), all.end());
  if (names.size() > kShown) names.resize(kShown);
  return absl::StrCat(absl::StrJoin(names, ", "),
                      all.size() > kShown ? absl::StrCat(" and ", all.size() - kShown, " more") : "");
}

// The layer that a tensor of the state dict belongs to.
std::string LayerOf(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

std::string LeafOf(const std::string& name) { return name.substr(name.rfind('.') + 1); }

bool HasVariable(const Graph& graph, const std::string& name) {
  return std::any_of(graph.variables.begin(), graph.variables.end(),
                     [&](const Variable& variable) { return variable.name == name; });
}

}  // namespace

// The batch normalisation that a tensor of the state dict belongs to, where the file has no statistics of it.
std::string OnnxImporter::MergedNormOf(absl::string_view name) const {
  const std::string norm(name.substr(0, name.rfind('.')));
  const std::string mean = absl::StrCat(norm, ".running_mean");
  return optimized_ && signature_.buffers.count(mean) != 0 && initializers_.count(mean) == 0 ? norm : "";
}

// Calls that take a lost parameter and read an initialiser of the exporter read what it was folded into. Calls of its
// layer that read another layer's parameter of that kind (weight, bias) read the first name of a tied pair.
void OnnxImporter::SortLostParameters() {
  if (!has_signature_) return;
  for (const auto& [name, initializer] : initializers_) {
    optimized_ = optimized_ || !signature_.Knows(name);
  }
  const auto& nodes = file_.model.graph().node();  // notes stand at nodes as they were before functions were inlined
  const bool has_notes =
      std::any_of(nodes.begin(), nodes.end(), [](const onnx::NodeProto& node) { return !NodeCall(node).empty(); });
  for (const auto& [name, placeholder] : signature_.placeholders) {
    if (initializers_.count(name) != 0 || options_.tied.count(name) != 0) continue;
    bool folded = !has_notes || !MergedNormOf(name).empty();
    std::set<std::string> first;
    for (const onnx::NodeProto& node : nodes) {
      const bool takes = CallTakes(NodeCall(node), placeholder);
      const bool of_layer = !LayerOf(name).empty() && NodeLayer(node) == LayerOf(name);
      for (const std::string& input : node.input()) {
        const auto found = initializers_.find(input);
        if (found == initializers_.end()) continue;
        const bool floating = IsFloatingType(found->second.message->data_type());
        folded = folded || (takes && floating && !signature_.Knows(input));
        const bool other = signature_.parameters.count(input) != 0 && LayerOf(input) != LayerOf(name);
        if (of_layer && other && LeafOf(input) == LeafOf(name)) first.insert(input);
      }
    }
    if (folded) {
      lost_.insert(name);
    } else if (first.size() == 1) {
      ties_[name] = *first.begin();
    } else {
      unused_.push_back(name);
    }
  }
}

// PyTorch's exporter as called plainly merges batch normalisations into weights and transposes others: these are
// initialisers of its own. Those that stand where weights stand, in the call of a lost parameter, are trained all the
// same.
void OnnxImporter::FindFoldedWeights() {
  if (lost_.empty()) return;
  const auto takes_lost = [&](const onnx::NodeProto& node) {
    const absl::string_view call = NodeCall(node);
    return call.empty() || std::any_of(lost_.begin(), lost_.end(), [&](const std::string& name) {
             return CallTakes(call, signature_.placeholders.at(name));
           });
  };
  for (const onnx::NodeProto& node : nodes_.node()) {
    for (const int i : WeightInputs(node)) {
      if (i >= node.input_size()) continue;
      const auto found = initializers_.find(node.input(i));
      if (found == initializers_.end() || found->second.parameter || signature_.Knows(found->first)) continue;
      const onnx::TensorProto& tensor = *found->second.message;
      const bool weight = node.op_type() == "Add" ? tensor.dims_size() == 1 : tensor.dims_size() > 0;
      if (!weight || !IsFloatingType(tensor.data_type()) || !takes_lost(node)) continue;
      found->second.parameter = true;
      folded_weights_.push_back(found->first);
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
  std::vector<std::string> merged;
  for (const auto& [second, first] : ties_) {
    if (!HasVariable(model_.graph, first)) continue;
    model_.aliases.push_back({second, first});
    merged.push_back(absl::StrCat(second, " (", first, ")"));
  }
  if (optimized_ && !merged.empty()) {
    model_.warnings.push_back(absl::StrCat(
        "the file has one tensor for two parameters: ", ListOf(merged),
        ". They train as one, as tied ones do; the exporter also merges parameters that only begin alike. ",
        kExportCall, " keeps those apart"));
  }
  return absl::OkStatus();
}

// Says which names of the state dict checkpoints will lack, and why.
void OnnxImporter::NameMissing() {
  std::set<std::string> merged;
  for (const std::string& name : lost_) merged.insert(MergedNormOf(name));
  merged.erase("");
  std::vector<std::string> lost(lost_.begin(), lost_.end());
  std::erase_if(lost, [&](const std::string& name) { return !MergedNormOf(name).empty(); });
  if (!merged.empty()) {
    model_.warnings.push_back(absl::StrCat("the exporter merged the batch normalisations ", ListOf(merged),
                                           " into other weights by their statistics: they normalise no more, and what "
                                           "is trained is another model. ",
                                           kExportCall, " keeps them"));
  }
  if (!folded_weights_.empty()) {
    const std::string from = lost.empty() ? "made weights of its own"
                                          : absl::StrCat("folded ", lost.size(), " parameters (", ListOf(lost),
                                                         ") into weights of other names");
    model_.warnings.push_back(absl::StrCat("the exporter ", from, " (", ListOf(folded_weights_),
                                           "), which are trained instead: the original model will not take them back. ",
                                           kExportCall, " keeps every name"));
  } else {
    for (const std::string& name : lost) {
      model_.warnings.push_back(absl::StrCat(
          "parameter '", name,
          "' has no values in the file, so checkpoints will lack its name: it is tied to another one, or forward does "
          "not use it. If it is tied, have both names written with model.tied: {",
          name, ": NAME-OF-THE-OTHER}"));
    }
  }
  if (!unused_.empty()) {
    model_.warnings.push_back(absl::StrCat(
        "the file does not hold the parameters ", ListOf(unused_),
        ": forward does not use them, or they are second names of tied ones (model.tied: {", unused_[0],
        ": NAME-OF-THE-OTHER} has such written). Checkpoints lack them: load_state_dict(..., strict=False)"));
  }
  std::vector<std::string> absent;
  for (const std::string& buffer : signature_.buffers) {
    const auto is_it = [&](const StateAlias& alias) { return alias.name == buffer; };
    const bool kept =
        HasVariable(model_.graph, buffer) || std::any_of(model_.aliases.begin(), model_.aliases.end(), is_it);
    if (!kept && MergedNormOf(buffer).empty()) absent.push_back(buffer);
  }
  if (absent.empty()) return;
  model_.warnings.push_back(absl::StrCat("the file does not hold the buffers ", ListOf(absent),
                                         ": no node reads them. Checkpoints lack them: "
                                         "load_state_dict(..., strict=False)"));
}

}  // namespace lockstep
