// Parameters that the signature names and the file has no values for: second names of tied ones, those that no node
// uses, and those that the exporter folded into weights of other names.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/state_names.h"
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

// Whether an initialiser of `rank` dimensions is a weight there.
bool IsWeightPlace(const onnx::NodeProto& node, int input, int rank) {
  // A group normalisation is written as one of instances, by constants, and a product and a sum with its parameters.
  if (absl::StrContains(NodeCall(node), "[target=torch.ops.aten.group_norm")) {
    return node.op_type() == "Mul" || node.op_type() == "Add";
  }
  const std::vector<int> places = WeightInputs(node);
  return std::count(places.begin(), places.end(), input) != 0 && (node.op_type() != "Add" || rank == 1);
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
    if (initializers_.count(name) != 0 || tied_.count(name) != 0) continue;
    bool folded = !has_notes || !MergedNormOf(name).empty(), taken = false;
    std::set<std::string> first;
    bool certain = false;  // the call takes the first name, as of a tied pair
    for (const onnx::NodeProto& node : nodes) {
      const bool takes = CallTakes(NodeCall(node), placeholder);
      taken = taken || takes;
      const bool of_layer = !LayerOf(name).empty() && NodeLayer(node) == LayerOf(name);
      for (const std::string& input : node.input()) {
        const auto found = initializers_.find(input);
        if (found == initializers_.end()) continue;
        const bool floating = IsFloatingType(found->second.message->data_type());
        folded = folded || (takes && floating && !signature_.Knows(input));
        const bool other = signature_.parameters.count(input) != 0 && LayerOf(input) != LayerOf(name);
        if (!of_layer || !other || LeafOf(input) != LeafOf(name)) continue;
        first.insert(input);
        certain = certain || CallTakes(NodeCall(node), signature_.placeholders.at(input));
      }
    }
    if (folded) {
      lost_.insert(name);
      continue;
    }
    if (taken) alike_.insert(name);
    if (first.size() == 1) {
      ties_[name] = {*first.begin(), certain};
    } else if (!taken) {
      unused_.push_back(name);
    }
  }
}

// Whether the call takes a value that no node gives any more, in a layer with parameters that no call takes: the
// exporter computed it, and maybe from them.
bool OnnxImporter::TakesComputed(const onnx::NodeProto& node, const std::set<std::string>& given) const {
  const std::string layer = NodeLayer(node);
  const auto within = [&](const std::string& name) {
    return layer.empty() || absl::StartsWith(name, absl::StrCat(layer, "."));
  };
  if (std::none_of(unused_.begin(), unused_.end(), within)) return false;
  const std::vector<std::string> values = ValuesOf(CallArguments(NodeCall(node)));
  return std::any_of(values.begin(), values.end(), [&](const std::string& value) {
    // Parts of a value have other names in the file than in the program.
    const bool part = absl::StartsWith(value, "getitem") && initializers_.count(value) == 0;
    return given.count(value) == 0 && !part;
  });
}

// PyTorch's exporter as called plainly merges batch normalisations into weights, transposes others and computes what
// depends on parameters alone: these are initialisers of its own. Those that stand where weights stand, in the call of
// a lost parameter or of such a value, are trained all the same; those of several calls apart, unless the calls take
// the same parameters.
absl::Status OnnxImporter::FindFoldedWeights() {
  if (lost_.empty() && unused_.empty()) return absl::OkStatus();
  std::set<std::string> given;
  std::map<std::string, std::string> lost;  // by their names in calls
  for (const auto* names : {&signature_.placeholders, &signature_.buffer_placeholders}) {
    for (const auto& [name, placeholder] : *names) {
      given.insert(placeholder);
      if (lost_.count(name) != 0) lost[placeholder] = name;
    }
  }
  for (const onnx::ValueInfoProto& input : file_.model.graph().input()) given.insert(input.name());
  for (const onnx::NodeProto& node : nodes_.node()) given.insert(node.output().begin(), node.output().end());
  bool computed = false;
  std::map<std::string, std::map<std::string, std::string>> readers;  // of a weight: its names by what its calls take
  for (onnx::NodeProto& node : *nodes_.mutable_node()) {
    const bool of_computed = TakesComputed(node, given);
    std::string source;
    for (const std::string& value : ValuesOf(CallArguments(NodeCall(node)))) {
      if (lost.count(value) != 0 || (of_computed && given.count(value) == 0)) absl::StrAppend(&source, value, " ");
    }
    if (source.empty() && !(NodeCall(node).empty() && !lost_.empty())) continue;
    for (int i = 0; i < node.input_size(); ++i) {
      const auto found = initializers_.find(node.input(i));
      if (found == initializers_.end() || signature_.Knows(found->first)) continue;
      const onnx::TensorProto& tensor = *found->second.message;
      if (!IsFloatingType(tensor.data_type()) || tensor.dims_size() == 0) continue;
      if (IsWeightPlace(node, i, tensor.dims_size())) {
        auto& names = readers[found->first];
        const auto [own, added] = names.insert({source, names.empty() ? found->first : ""});
        if (own->second.empty()) own->second = Fresh(found->first + ".own");
        initializers_[own->second] = {&tensor, true};
        if (added) folded_weights_.push_back(own->second);
        node.set_input(i, own->second);
        computed = computed || of_computed;
      } else if (of_computed && CallTakes(NodeCall(node), found->first)) {
        return absl::UnimplementedError(
            absl::StrCat("the exporter computed '", found->first,
                         "' for the file, maybe from parameters that the file does not hold (", ListNames(unused_),
                         "), which would not be trained. Export it with ", kExportCall));
      }
    }
  }
  if (computed) lost_.insert(unused_.begin(), unused_.end());
  if (computed) unused_.clear();
  return absl::OkStatus();
}

absl::Status OnnxImporter::AddTied() {
  for (const auto& [second, first] : tied_) {
    const std::string key = options_.tied.count(second) != 0 ? "model.tied" : "the file's note lockstep.tied";
    if (!HasVariable(model_.graph, first)) {
      return absl::InvalidArgumentError(absl::StrCat(key, ": the file has no parameter '", first, "'"));
    }
    if (HasVariable(model_.graph, second)) {
      return absl::InvalidArgumentError(absl::StrCat(key, ": the file has a parameter '", second,
                                                     "' of its own, so it is not tied to '", first, "'"));
    }
    model_.aliases.push_back({second, first});
  }
  std::vector<std::string> merged;
  for (const auto& [second, tie] : ties_) {
    if (!HasVariable(model_.graph, tie.first)) continue;
    model_.aliases.push_back({second, tie.first});
    if (tie.certain || alike_.count(second) != 0) continue;
    merged.push_back(absl::StrCat(second, " (", tie.first, ")"));
  }
  if (optimized_ && !merged.empty()) {
    model_.warnings.push_back(absl::StrCat(
        "the file has one tensor for two parameters: ", ListNames(merged),
        ". They train as one, as tied ones do; the exporter also merges parameters that only begin alike. ",
        kExportCall, " keeps those apart"));
  }
  return absl::OkStatus();
}

// What the file says of requires_grad; a job may choose otherwise.
absl::Status OnnxImporter::NoteFrozen() {
  model_.notes.says_frozen = export_notes_.has_value();
  if (!export_notes_.has_value()) return absl::OkStatus();
  for (const std::string& name : export_notes_->frozen) {
    const auto found = std::find_if(model_.graph.variables.begin(), model_.graph.variables.end(),
                                    [&](const Variable& variable) { return variable.name == name; });
    if (found == model_.graph.variables.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the file's note lockstep.frozen names '", name, "', which is no parameter of the file"));
    }
    if (found->kind == VariableKind::kParameter) model_.notes.frozen.push_back(name);
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
    model_.warnings.push_back(absl::StrCat("the exporter merged the batch normalisations ", ListNames(merged),
                                           " into other weights by their statistics: they normalise no more, and what "
                                           "is trained is another model. ",
                                           kExportCall, " keeps them"));
  }
  if (!folded_weights_.empty()) {
    const std::string from = lost.empty() ? "made weights of its own"
                                          : absl::StrCat("folded ", lost.size(), " parameters (", ListNames(lost),
                                                         ") into weights of other names");
    model_.warnings.push_back(absl::StrCat("the exporter ", from, " (", ListNames(folded_weights_),
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
        "the file does not hold the parameters ", ListNames(unused_),
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
  model_.warnings.push_back(absl::StrCat("the file does not hold the buffers ", ListNames(absent),
                                         ": no node reads them. Checkpoints lack them: "
                                         "load_state_dict(..., strict=False)"));
}

}  // namespace lockstep
