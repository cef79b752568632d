#include "common/graph/onnx/dropping_layers.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "common/graph/onnx/signature.h"

namespace lockstep {
namespace {

// Nodes of one call of a layer. Known ones have about 20.
constexpr size_t kMostLayerNodes = 128;
// Looks at nodes in all: more than any model's layers take, and done in a second.
constexpr int64_t kMostLooks = int64_t{1} << 20;

bool Draws(const onnx::NodeProto& node) {
  return absl::StartsWith(node.op_type(), "RandomUniform") || absl::StartsWith(node.op_type(), "RandomNormal") ||
         node.op_type() == "Bernoulli";
}

bool ScalesOrShifts(const std::string& op) {
  static const auto& ops = *new std::set<std::string>{
      "Add", "Bernoulli", "Cast",  "CastLike",       "Concat",     "Constant", "ConstantOfShape",
      "Div", "Expand",    "Floor", "Gather",         "Greater",    "Identity", "Less",
      "Mul", "Neg",       "Not",   "Reshape",        "Shape",      "Slice",    "Squeeze",
      "Sub", "Unsqueeze", "Where", "GreaterOrEqual", "LessOrEqual"};
  return ops.count(op) != 0 || absl::StartsWith(op, "RandomUniform") || absl::StartsWith(op, "RandomNormal");
}

bool DropsByName(absl::string_view type) {
  const size_t dot = type.rfind('.');
  if (dot != absl::string_view::npos) type.remove_prefix(dot + 1);
  for (const absl::string_view end : {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "DropPath"}) {
    if (absl::EndsWith(type, end)) return true;
  }
  return type == "StochasticDepth";
}

// The dropping layer that a node comes from, by its name in the model.
std::optional<std::string> DroppingLayer(const onnx::NodeProto& node) {
  const std::vector<LayerOfNode> layers = LayersOf(node);
  for (size_t i = layers.size(); i-- > 1;) {
    if (DropsByName(layers[i].type)) return layers[i].name;
  }
  return std::nullopt;
}

class Finder {
 public:
  Finder(const onnx::GraphProto& nodes, const std::set<std::string>& outputs) : nodes_(nodes), outputs_(outputs) {
    for (const onnx::NodeProto& node : nodes.node()) {
      for (const std::string& output : node.output()) producers_[output] = &node;
      for (const std::string& input : node.input()) readers_[input].push_back(&node);
    }
  }

  std::map<std::string, std::vector<std::string>> Find() {
    for (const onnx::NodeProto& node : nodes_.node()) {
      if (!Draws(node) || node.output_size() != 1) continue;
      const std::optional<std::string> layer = DroppingLayer(node);
      if (!layer.has_value()) continue;
      const std::string result = ResultOf(node, *layer);
      if (!result.empty() && found_.count(result) == 0) AddEntering(result, *layer);
    }
    return std::move(found_);
  }

 private:
  // The one value that leaves the layer and depends on what `draw` draws; empty where there are several.
  std::string ResultOf(const onnx::NodeProto& draw, const std::string& layer) {
    std::vector<std::string> inside = {draw.output(0)};
    std::set<std::string> seen(inside.begin(), inside.end()), leaving;
    while (!inside.empty() && seen.size() <= kMostLayerNodes && leaving.size() <= 1 && looks_ <= kMostLooks) {
      const std::string value = inside.back();
      inside.pop_back();
      if (outputs_.count(value) != 0) leaving.insert(value);
      const auto readers = readers_.find(value);
      if (readers == readers_.end()) continue;
      looks_ += static_cast<int64_t>(readers->second.size());
      for (const onnx::NodeProto* reader : readers->second) {
        if (DroppingLayer(*reader) != layer) {
          leaving.insert(value);
          continue;
        }
        for (const std::string& output : reader->output()) {
          if (seen.insert(output).second) inside.push_back(output);
        }
      }
    }
    return inside.empty() && leaving.size() == 1 ? *leaving.begin() : "";
  }

  // A layer that is called again ends where its first call does.
  void AddEntering(const std::string& result, const std::string& layer) {
    std::vector<std::string> inside = {result};
    std::set<std::string> seen = {result, ""};
    std::vector<std::string> entering;
    while (!inside.empty()) {
      const std::string value = inside.back();
      inside.pop_back();
      const auto producer = producers_.find(value);
      if (producer == producers_.end() || DroppingLayer(*producer->second) != layer || found_.count(value) != 0) {
        entering.push_back(value);
        continue;
      }
      if (!ScalesOrShifts(producer->second->op_type()) || seen.size() > kMostLayerNodes) return;
      for (const std::string& input : producer->second->input()) {
        if (seen.insert(input).second) inside.push_back(input);
      }
    }
    found_[result] = std::move(entering);
  }

  const onnx::GraphProto& nodes_;
  const std::set<std::string>& outputs_;
  std::map<std::string, const onnx::NodeProto*> producers_;
  std::map<std::string, std::vector<const onnx::NodeProto*>> readers_;
  std::map<std::string, std::vector<std::string>> found_;
  int64_t looks_ = 0;
};

}  // namespace

std::map<std::string, std::vector<std::string>> FindDroppingLayers(const onnx::GraphProto& nodes,
                                                                   const std::set<std::string>& outputs) {
  return Finder(nodes, outputs).Find();
}

}  // namespace lockstep
