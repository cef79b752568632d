// Tensors that exporters write once for several of the model, because their values are equal when the file is made: the
// scales of new normalisations, biases of zeros, running statistics that nothing has moved. Each gets a value of its
// own again, under its own name, before anything else is read. Tied parameters are one tensor in the program, too, and
// stay one.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/state_names.h"

namespace lockstep {
namespace {

// Of one layer. The weight says how many there are before anyone has counted its elements.
constexpr int64_t kMostBiases = int64_t{1} << 24;

// An input of a node that reads an initialiser.
struct Place {
  onnx::NodeProto* node;
  int input;

  const std::string& name() const { return node->input(input); }
};

bool IsStateName(const std::string& name) { return !name.empty() && name[0] != '/' && !absl::StrContains(name, "::"); }

// How many elements the bias of such a node has; 0 where it takes none or its weight does not tell.
int64_t BiasSize(const onnx::NodeProto& node, const onnx::TensorProto& weight) {
  const auto attribute = [&](const char* name, int64_t otherwise) {
    const onnx::AttributeProto* found = FindAttribute(node, name);
    return found == nullptr ? otherwise : found->i();
  };
  const auto& dims = weight.dims();
  if (node.op_type() == "Gemm" && dims.size() == 2) return dims[attribute("transB", 0) != 0 ? 0 : 1];
  if (node.op_type() == "Conv" && dims.size() > 2) return dims[0];
  const bool grouped = attribute("group", 1) != 1;
  return node.op_type() == "ConvTranspose" && dims.size() > 2 && !grouped ? dims[1] : 0;
}

}  // namespace

// What one call of the program takes and what the file's nodes of it read.
class OnnxImporter::MergedCall {
 public:
  MergedCall(OnnxImporter* importer, absl::string_view call, std::vector<onnx::NodeProto*> nodes)
      : importer_(importer), arguments_(CallArguments(call)), nodes_(std::move(nodes)) {}

  // `tensors`: the model's, by their names in calls; `given`: what else is known by name in the file; `held`: its
  // initialisers.
  void Split(const std::map<std::string, std::string>& tensors, const std::set<std::string>& given,
             const std::set<std::string>& held) {
    if (SplitNorm(tensors)) return;
    bool complete = true;
    std::map<std::string, int> taken;  // tensors that the file holds
    std::vector<std::string> lost;
    for (const std::string& value : ValuesOf(arguments_)) {
      const auto found = tensors.find(value);
      const std::string& name = found == tensors.end() ? value : found->second;
      if (held.count(name) != 0) {
        ++taken[name];
      } else if (found == tensors.end()) {
        complete = complete && given.count(value) != 0;
      } else if (const auto tied = importer_->tied_.find(name); tied != importer_->tied_.end()) {
        ++taken[tied->second];
      } else if (std::count(lost.begin(), lost.end(), name) == 0) {
        lost.push_back(name);
      }
    }
    const std::vector<Place> others = OtherPlaces(taken);
    const bool merged = std::any_of(others.begin(), others.end(),
                                    [&](const Place& place) { return importer_->signature_.Knows(place.name()); });
    if (!merged) {
      if (complete && others.empty() && lost.size() == 1) RestoreBias(lost[0]);
    } else if (complete && lost.empty()) {
      for (const Place& place : others) SplitPlace(place, "");
    } else if (complete && lost.size() == others.size()) {
      for (size_t i = 0; i < lost.size(); ++i) SplitPlace(others[i], lost[i]);
    } else {
      for (const std::string& name : lost) {
        if (importer_->signature_.parameters.count(name) != 0) importer_->alike_.insert(name);
      }
    }
  }

 private:
  // A batch normalisation takes its tensors at the same places as its call.
  bool SplitNorm(const std::map<std::string, std::string>& tensors) {
    if (nodes_.size() != 1 || nodes_[0]->op_type() != "BatchNormalization") return false;
    if (nodes_[0]->input_size() < 5 || arguments_.size() < 5) return false;
    for (int i = 1; i < 5; ++i) {
      const std::string& argument = arguments_[static_cast<size_t>(i)];
      const auto found = tensors.find(argument.substr(argument.empty() ? 0 : 1));
      const Place place{nodes_[0], i};
      if (importer_->initializers_.count(place.name()) == 0) continue;
      if (argument == "None") SplitPlace(place, "");
      if (found != tensors.end() && found->second != place.name()) SplitPlace(place, found->second);
    }
    return true;
  }

  // Where the nodes read weights that the call does not take by name.
  std::vector<Place> OtherPlaces(const std::map<std::string, int>& taken) const {
    std::vector<Place> others;
    for (onnx::NodeProto* node : nodes_) {
      std::map<std::string, int> read;
      for (int i = 0; i < node->input_size(); ++i) {
        const std::string& name = node->input(i);
        const auto found = importer_->initializers_.find(name);
        if (found == importer_->initializers_.end()) continue;
        const onnx::TensorProto& tensor = *found->second.message;
        if (!IsFloatingType(tensor.data_type()) || tensor.dims_size() == 0) continue;
        const auto own = taken.find(name);
        if (own == taken.end() || ++read[name] > own->second) others.push_back({node, i});
      }
    }
    return others;
  }

  // `name`: of the model; empty for a constant that the exporter made.
  void SplitPlace(const Place& place, std::string name) {
    const std::string& from = place.name();
    // An initialiser of the exporter's own is a folded weight, or a constant.
    if (!importer_->signature_.Knows(from) || importer_->tied_.count(name) != 0) return;
    const bool parameter = importer_->signature_.parameters.count(name) != 0;
    if (name.empty()) name = importer_->Fresh(from + ".constant");
    importer_->initializers_.insert({name, {importer_->initializers_.at(from).message, parameter}});
    importer_->taken_names_.insert(name);
    importer_->optimized_ = true;
    place.node->set_input(place.input, name);
  }

  // Exporters leave out a bias of zeros.
  void RestoreBias(const std::string& name) {
    if (nodes_.size() != 1 || importer_->signature_.parameters.count(name) == 0) return;
    onnx::NodeProto* node = nodes_[0];
    if (InputsOf(*node).size() != 2) return;
    const auto found = importer_->initializers_.find(node->input(1));
    if (found == importer_->initializers_.end()) return;
    const onnx::TensorProto& weight = *found->second.message;
    const int64_t size = BiasSize(*node, weight);
    if (size <= 0 || size > kMostBiases || weight.data_type() != onnx::FLOAT) return;
    for (const int64_t dim : weight.dims()) {
      if (dim <= 0) return;
    }
    onnx::TensorProto& zeros = importer_->restored_.emplace_back();
    zeros.set_name(name);
    zeros.set_data_type(onnx::FLOAT);
    zeros.add_dims(size);
    zeros.set_raw_data(std::string(static_cast<size_t>(size) * sizeof(float), '\0'));
    importer_->initializers_.insert({name, {&zeros, true}});
    importer_->taken_names_.insert(name);
    importer_->optimized_ = true;
    while (node->input_size() < 3) node->add_input("");
    node->set_input(2, name);
  }

  OnnxImporter* const importer_;
  const std::vector<std::string> arguments_;
  const std::vector<onnx::NodeProto*> nodes_;
};

void OnnxImporter::SplitMerged() { has_signature_ ? SplitByCalls() : SplitByNames(); }

// The newer exporter notes at each node which call of the program it is of, and with which tensors.
void OnnxImporter::SplitByCalls() {
  std::map<std::string, std::string> tensors;
  for (const auto* names : {&signature_.placeholders, &signature_.buffer_placeholders}) {
    for (const auto& [name, placeholder] : *names) tensors[placeholder] = name;
  }
  std::set<std::string> given, held;
  for (const onnx::ValueInfoProto& input : file_.model.graph().input()) given.insert(input.name());
  for (const auto& [name, initializer] : initializers_) held.insert(name);
  std::map<absl::string_view, std::vector<onnx::NodeProto*>> calls;
  for (onnx::NodeProto& node : *nodes_.mutable_node()) {
    given.insert(node.output().begin(), node.output().end());
    if (!NodeCall(node).empty()) calls[NodeCall(node)].push_back(&node);
  }
  for (auto& [call, nodes] : calls) MergedCall(this, call, std::move(nodes)).Split(tensors, given, held);
  std::erase_if(alike_, [&](const std::string& name) { return initializers_.count(name) != 0; });
}

// The older exporter, of a model in eval(), begins with an Identity for each tensor that it merged, under its name in
// the state dict. Tied parameters it writes under one name.
void OnnxImporter::SplitByNames() {
  if (file_.model.producer_name() != "pytorch") return;
  std::set<std::string> outputs;
  for (const onnx::ValueInfoProto& output : file_.model.graph().output()) outputs.insert(output.name());
  auto& nodes = *nodes_.mutable_node();
  int kept = 0, next = 0;
  for (; next < nodes.size() && nodes[next].op_type() == "Identity"; ++next) {
    const onnx::NodeProto& node = nodes[next];
    const bool plain = node.input_size() == 1 && node.output_size() == 1 && IsStateName(node.output(0));
    const auto found = plain ? initializers_.find(node.input(0)) : initializers_.end();
    const bool merged = found != initializers_.end() && found->second.parameter && outputs.count(node.output(0)) == 0 &&
                        tied_.count(node.output(0)) == 0 && initializers_.count(node.output(0)) == 0;
    if (merged) {
      const Initializer own = found->second;
      initializers_.insert({node.output(0), own});
    } else {
      nodes.SwapElements(kept++, next);
    }
  }
  for (; next < nodes.size(); ++next) nodes.SwapElements(kept++, next);
  nodes.DeleteSubrange(kept, nodes.size() - kept);
}

void OnnxImporter::WarnOfAlike() {
  if (alike_.empty()) return;
  model_.warnings.push_back(absl::StrCat("the file has no tensors of their own for ", ListNames(alike_),
                                         ", which forward uses: the exporter merged them into others that begin alike, "
                                         "or left out zeros. They do not train as in the model. ",
                                         kExportCall, " keeps them"));
}

}  // namespace lockstep
