#include "chief/events/graph_event.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "chief/events/event_reading.h"
#include "common/graph/build/build_metagraph.h"
#include "common/graph/ops/attributes.h"
#include "common/graph/serialize.h"
#include "common/tensor/tensor.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;
using Nodes = std::map<std::string, tensorboard::NodeDef>;

MetaGraph Builtin(const std::string& architecture) {
  MetaGraphRequest request;
  request.model.architecture = architecture;
  request.inputs = {{"images", "images", InputRole::kFeature, DType::kF32, {kBatchDim, 1, 32, 32}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.schedule.lr = 0.05;
  request.update.clip_global_norm = 1.5;
  request.pass_batch = 16;
  absl::StatusOr<MetaGraph> metagraph = BuildMetaGraph(request);
  INFO(metagraph.status().ToString());
  REQUIRE(metagraph.ok());
  return *std::move(metagraph);
}

// By name, after a look at what every graph has: names of their own in the characters that readers split by, and inputs
// that are there.
Nodes NodesOf(const tensorboard::GraphDef& graph) {
  Nodes nodes;
  for (const auto& node : graph.node()) {
    CHECK(node.name().find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") ==
          std::string::npos);
    CHECK(nodes.emplace(node.name(), node).second);
  }
  for (const auto& node : graph.node()) {
    for (const std::string& input : node.input()) CHECK(nodes.count(input.substr(0, input.find(':'))) == 1);
  }
  return nodes;
}

std::vector<std::string> NodeInputs(const tensorboard::NodeDef& node) {
  return {node.input().begin(), node.input().end()};
}

std::vector<int64_t> ShapeOf(const tensorboard::NodeDef& node, int output = 0) {
  std::vector<int64_t> sizes;
  for (const auto& dim : node.attr().at("_output_shapes").list().shape(output).dim()) sizes.push_back(dim.size());
  return sizes;
}

TEST_CASE("graph event: nodes read what they read in the metagraph, with the shapes of a pass", "[events]") {
  const Nodes nodes = NodesOf(MakeGraphDef(Builtin("lenet")));

  CHECK(nodes.at("images").op() == "Placeholder");
  CHECK(ShapeOf(nodes.at("images")) == std::vector<int64_t>{16, 1, 32, 32});
  CHECK(nodes.at("conv1").op() == "Conv");
  CHECK(NodeInputs(nodes.at("conv1")) == std::vector<std::string>{"images", "conv1/weight", "conv1/bias"});
  CHECK(ShapeOf(nodes.at("conv1")) == std::vector<int64_t>{16, 6, 32, 32});
  CHECK(nodes.at("conv1").attr().at("pads").list().i(0) == 2);
  CHECK(nodes.at("conv1/weight").op() == "Parameter");
  CHECK(ShapeOf(nodes.at("conv1/weight")) == std::vector<int64_t>{6, 1, 5, 5});
  CHECK(NodeInputs(nodes.at("relu1")) == std::vector<std::string>{"conv1"});
  CHECK(nodes.at("loss").op() == "SOFTMAX_CROSS_ENTROPY");
  CHECK(NodeInputs(nodes.at("loss")) == std::vector<std::string>{"fc3", "labels"});
}

TEST_CASE("graph event: no node and no edge of a model is left out", "[events]") {
  for (const char* architecture : {"lenet", "resnet18"}) {
    CAPTURE(architecture);
    const MetaGraph metagraph = Builtin(architecture);
    const Graph& forward = metagraph.forward;
    size_t edges = 2;  // of the loss
    for (const Node& node : forward.nodes) edges += node.inputs.size();

    const Nodes nodes = NodesOf(MakeGraphDef(metagraph));

    CHECK(nodes.size() ==
          forward.inputs.size() + forward.variables.size() + forward.constants.size() + forward.nodes.size() + 1);
    size_t shown = 0;
    for (const auto& [name, node] : nodes) shown += static_cast<size_t>(node.input_size());
    CHECK(shown == edges);
  }
}

TEST_CASE("graph event: names are paths of PyTorch's modules", "[events]") {
  const Nodes nodes = NodesOf(MakeGraphDef(Builtin("resnet18")));

  CHECK(nodes.at("layer1/0/conv1").op() == "Conv");
  CHECK(nodes.at("layer1/0/conv1/weight").op() == "Parameter");
  CHECK(nodes.at("layer1/0/bn1/running_mean").op() == "Statistic");
}

// As exporters write them: paths with '/', names without a path, characters of C++, outputs that nobody asked for.
TEST_CASE("graph event: an imported model's names become paths of their own", "[events]") {
  MetaGraph metagraph;
  metagraph.pass_batch = 4;
  metagraph.loss.kind = LossKind::kGraphOutput;
  metagraph.loss.output = "sum";
  Graph& forward = metagraph.forward;
  forward.inputs = {{"x", DType::kF32, {kBatchDim, 6}}};
  forward.variables = {{"encoder.0.weight", DType::kF32, {6, 6}, VariableKind::kParameter, {}},
                       {"scale", DType::kF32, {6}, VariableKind::kFrozen, {}}};
  forward.constants = {{"onnx::Mul_12", std::make_shared<const Tensor>(Tensor::Zeros(DType::kF32, {6}))}};
  SplitAttributes halves;
  halves.axis = 1;
  halves.split = {3, 3};
  forward.nodes = {{"node_linear", OpType::kMatMul, {"x", "encoder.0.weight"}, {"h"}, {}},
                   {"/encoder/layers.0/Mul", OpType::kMul, {"h", "onnx::Mul_12"}, {"m"}, {}},
                   {"encoder.layers.0.Mul", OpType::kMul, {"m", "scale"}, {"n"}, {}},
                   {"encoder/layers/0/Mul", OpType::kSplit, {"n"}, {"left", "right"}, halves},
                   {"Add:0", OpType::kAdd, {"left", "right"}, {"sum"}, {}}};
  forward.outputs = {"sum"};

  const Nodes nodes = NodesOf(MakeGraphDef(metagraph));

  CHECK(NodeInputs(nodes.at("encoder/0/node_linear")) == std::vector<std::string>{"x", "encoder/0/weight"});
  CHECK(NodeInputs(nodes.at("encoder/layers.0/Mul")) ==
        std::vector<std::string>{"encoder/0/node_linear", "encoder/layers.0/onnx__Mul_12"});
  CHECK(nodes.at("encoder/layers.0/onnx__Mul_12").op() == "Const");
  CHECK(NodeInputs(nodes.at("encoder/layers/0/Mul")) == std::vector<std::string>{"encoder/layers.0/Mul", "scale"});
  CHECK(NodeInputs(nodes.at("encoder/layers/0/Mul_1")) == std::vector<std::string>{"encoder/layers/0/Mul"});
  CHECK(NodeInputs(nodes.at("Add_0")) ==
        std::vector<std::string>{"encoder/layers/0/Mul_1", "encoder/layers/0/Mul_1:1"});
  CHECK(ShapeOf(nodes.at("encoder/layers/0/Mul_1"), 1) == std::vector<int64_t>{4, 3});
  CHECK(nodes.count("loss") == 0);
}

TEST_CASE("graph event: a metagraph is one graph event, one metagraph event and a text, of step 0", "[events]") {
  const MetaGraph metagraph = Builtin("lenet");
  const std::string fingerprint = Fingerprint(metagraph).value();

  const auto events = ReadEvents(
      GraphRecords(absl::FromUnixSeconds(1700000000), metagraph, fingerprint, DescribeTraining(metagraph, nullptr)));

  REQUIRE(events.size() == 3);
  for (const auto& event : events) CHECK(event.step() == 0);
  tensorboard::GraphDef graph;
  REQUIRE(graph.ParseFromString(events[0].graph_def()));
  CHECK(graph.node_size() == MakeGraphDef(metagraph).node_size());
  tensorboard::MetaGraphDef def;
  REQUIRE(def.ParseFromString(events[1].meta_graph_def()));
  CHECK(def.meta_info_def().meta_graph_version() == fingerprint);
  const auto& text = events[2].summary().value(0);
  CHECK(text.tag() == "metagraph/" + fingerprint.substr(0, 12));
  CHECK_THAT(text.tensor().string_val(0), Contains(fingerprint) && Contains("images F32\\[-1, 1, 32, 32]") &&
                                              Contains("| trained | ") && Contains("\"clip_global_norm\": 1.5"));
}

TEST_CASE("graph event: a name with a line break or a bar stays in its cell", "[events]") {
  MetaGraph metagraph = Builtin("lenet");
  metagraph.signature[0].name = "a\n| b";

  const auto events = ReadEvents(GraphRecords(absl::UnixEpoch(), metagraph, "0123456789abcdef", {}));

  REQUIRE(events.size() == 3);
  CHECK_THAT(events[2].summary().value(0).tensor().string_val(0), Contains("\n| inputs | a &#124; b F32"));
}

}  // namespace
}  // namespace lockstep::chief
