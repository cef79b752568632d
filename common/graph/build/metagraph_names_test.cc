// Names of a model's own that meet those that Lockstep gives.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "absl/strings/escaping.h"
#include "common/graph/build/build_metagraph.h"
#include "common/graph/build/lenet_metagraph.h"
#include "common/graph/passes/serving_graph.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("metagraph: a model may have a value called as the data calls its labels", "[graph]") {
  MetaGraphRequest request = LenetRequest();
  request.imported = Lenet().forward;
  request.imported->inputs.pop_back();  // the labels that building added
  for (Node& node : request.imported->nodes) {
    for (std::string& name : node.inputs) name = name == request.imported->outputs[0] ? "labels" : name;
    for (std::string& name : node.outputs) name = name == request.imported->outputs[0] ? "labels" : name;
  }
  request.imported->outputs = {"labels"};

  const absl::StatusOr<MetaGraph> metagraph = BuildMetaGraph(request);

  INFO(metagraph.status());
  REQUIRE(metagraph.ok());
  CHECK(metagraph->loss.output == "labels");
  CHECK(metagraph->loss.label == "labels_");
  CHECK(metagraph->signature[1].field == "labels");
}

TEST_CASE("metagraph: a tensor that no checkpoint file can name is refused with its name", "[graph]") {
  for (const std::string name : {"__metadata__", "caf\xe9"}) {
    MetaGraphRequest request = LenetRequest();
    request.imported = Lenet().forward;
    request.imported->inputs.pop_back();  // the labels that building added
    request.imported->variables[0].name = name;
    for (Node& node : request.imported->nodes) {
      std::replace(node.inputs.begin(), node.inputs.end(), std::string("conv1.weight"), name);
    }

    const absl::Status status = BuildMetaGraph(request).status();

    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()),
               Contains(absl::CHexEscape(name)) && Contains("checkpoint") && Contains("rename it"));
  }
}

TEST_CASE("metagraph: a graph for serving names its results apart from the model's values", "[graph]") {
  MetaGraph metagraph = Lenet();
  Graph& forward = metagraph.forward;
  const std::string taken = forward.nodes[0].outputs[0];
  for (Node& node : forward.nodes) {
    std::replace(node.inputs.begin(), node.inputs.end(), taken, std::string("images.output"));
    std::replace(node.outputs.begin(), node.outputs.end(), taken, std::string("images.output"));
  }
  forward.nodes[1].name = "images.output_";
  forward.outputs.push_back("images");

  const Graph serving = MakeServingGraph(metagraph);

  std::set<std::string> values, nodes;
  for (const Node& node : serving.nodes) {
    CHECK(nodes.insert(node.name).second);
    for (const std::string& value : node.outputs) CHECK(values.insert(value).second);
  }
}

}  // namespace
}  // namespace lockstep
