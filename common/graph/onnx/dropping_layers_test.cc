#include "common/graph/onnx/dropping_layers.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// The nodes of a file, each in a layer of a class, as PyTorch's exporter notes them.
class Nodes {
 public:
  void Add(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
           const std::string& layer = "", const std::string& type = "") {
    onnx::NodeProto* node = graph_.add_node();
    node->set_op_type(op);
    for (const std::string& input : inputs) node->add_input(input);
    node->add_output(output);
    const bool inside = !layer.empty();
    Note(node, "pkg.torch.onnx.name_scopes", absl::StrCat("['', ", inside ? "'" + layer + "', " : "", "'call']"));
    Note(node, "pkg.torch.onnx.class_hierarchy",
         absl::StrCat("['__main__.NetDropout', ", inside ? "'" + type + "', " : "", "'aten.call']"));
  }

  // x * (draw < p) / p, in one layer.
  void AddDropout(const std::string& x, const std::string& output, const std::string& layer, const std::string& type) {
    Add("RandomUniformLike", {x}, output + ".draw", layer, type);
    Add("Less", {output + ".draw", "p"}, output + ".kept", layer, type);
    Add("Cast", {output + ".kept"}, output + ".factor", layer, type);
    Add("Mul", {x, output + ".factor"}, output, layer, type);
  }

  std::map<std::string, std::vector<std::string>> Find(const std::set<std::string>& outputs) const {
    return FindDroppingLayers(graph_, outputs);
  }

 private:
  static void Note(onnx::NodeProto* node, const std::string& key, const std::string& value) {
    onnx::StringPair* property = node->add_metadata_props();
    property->set_key(key);
    property->set_value(value);
  }

  onnx::GraphProto graph_;
};

bool Enters(const std::vector<std::string>& entering, const std::string& value) {
  return std::find(entering.begin(), entering.end(), value) != entering.end();
}

TEST_CASE("dropping layers: a layer counts by its class, and what enters it is named", "[onnx]") {
  for (const char* type : {"torch.nn.modules.dropout.Dropout2d", "Dropout", "timm.layers.drop.DropPath",
                           "torchvision.ops.stochastic_depth.StochasticDepth", "x.SwinDropPath"}) {
    CAPTURE(type);
    Nodes nodes;
    nodes.Add("Relu", {"x"}, "h");
    nodes.AddDropout("h", "y", "drop", type);
    nodes.Add("Relu", {"y"}, "z");
    const auto found = nodes.Find({"z"});
    REQUIRE(found.size() == 1);
    CHECK(found.count("y") == 1);
    CHECK(Enters(found.at("y"), "h"));
    CHECK_FALSE(Enters(found.at("y"), "x"));
  }
  for (const char* type : {"noise.GaussianNoise", "x.DropoutSchedule", "x.StochasticDepthwise"}) {
    CAPTURE(type);
    Nodes nodes;
    nodes.AddDropout("x", "y", "drop", type);
    CHECK(nodes.Find({"y"}).empty());
  }
}

TEST_CASE("dropping layers: draws of the model itself do not count, whatever it is called", "[onnx]") {
  Nodes nodes;
  nodes.AddDropout("x", "y", "", "");
  CHECK(nodes.Find({"y"}).empty());
}

TEST_CASE("dropping layers: one that does more than drop does not count", "[onnx]") {
  Nodes computes;
  computes.Add("Relu", {"x"}, "h", "drop", "Dropout");
  computes.AddDropout("h", "y", "drop", "Dropout");
  CHECK(computes.Find({"y"}).empty());

  Nodes gives_two;
  gives_two.AddDropout("x", "y", "drop", "Dropout");
  CHECK(gives_two.Find({"y", "y.kept"}).empty());
}

TEST_CASE("dropping layers: each call of a layer has a result of its own", "[onnx]") {
  Nodes nodes;
  nodes.AddDropout("x", "y", "drop", "Dropout");
  nodes.Add("Relu", {"y"}, "h");
  nodes.AddDropout("h", "z", "drop", "Dropout");
  const auto found = nodes.Find({"z"});
  REQUIRE(found.size() == 2);
  CHECK(Enters(found.at("y"), "x"));
  CHECK(Enters(found.at("z"), "h"));
  CHECK_FALSE(Enters(found.at("z"), "x"));
}

}  // namespace
}  // namespace lockstep
