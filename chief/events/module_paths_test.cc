#include "chief/events/module_paths.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/tensor/tensor.h"

namespace lockstep::chief {
namespace {

using Paths = std::vector<std::string>;

// Each node reads the one before it, and a variable or constant when there is one.
Graph Chain(const std::vector<std::pair<std::string, std::string>>& nodes) {
  Graph graph;
  std::string value = "x";
  for (const auto& [name, other] : nodes) {
    graph.nodes.push_back({name, OpType::kAdd, {value}, {name + ".out"}, {}});
    if (!other.empty()) graph.nodes.back().inputs.push_back(other);
    value = name + ".out";
  }
  return graph;
}

TEST_CASE("module paths: names are split at '/', else at PyTorch's dots, and have no other signs", "[events]") {
  CHECK(ModulePath("encoder.0.weight") == "encoder/0/weight");
  CHECK(ModulePath("/encoder/layers.0/Mul") == "encoder/layers.0/Mul");
  CHECK(ModulePath("onnx::Mul_12") == "onnx__Mul_12");
  CHECK(ModulePath("^a b:0") == "_a_b_0");
  CHECK(ModulePath("//") == "_");
}

TEST_CASE("module paths: a node without a path stands where its variable does, or its neighbours meet", "[events]") {
  Graph graph = Chain({{"node_add", ""},
                       {"node_q", "layers.0.attn.q.weight"},
                       {"node_view", "val_1"},
                       {"node_o", "layers.0.attn.o.weight"},
                       {"node_residual", ""},
                       {"node_up", "layers.0.mlp.up.weight"},
                       {"node_gelu", "val_1"},
                       {"node_gelu_2", "layers.0.mask"},
                       {"node_down", "layers.1.mlp.down.weight"},
                       {"node_norm", "norm.weight"},
                       {"node_scale", "scale"},
                       {"node_last", "val_2"}});
  for (const char* name : {"layers.0.attn.q.weight", "layers.0.attn.o.weight", "layers.0.mlp.up.weight",
                           "layers.1.mlp.down.weight", "norm.weight", "scale"}) {
    graph.variables.push_back({name, DType::kF32, {1}, VariableKind::kParameter, {}});
  }
  for (const char* name : {"val_1", "val_2", "val_unread", "layers.0.mask"}) {
    graph.constants.push_back({name, std::make_shared<const Tensor>(Tensor::Zeros(DType::kF32, {1}))});
  }

  const ModulePaths paths = FindModulePaths(graph);

  CHECK(paths.nodes == Paths{"node_add", "layers/0/attn/q/node_q", "layers/0/attn/node_view", "layers/0/attn/o/node_o",
                             "layers/0/node_residual", "layers/0/mlp/up/node_up", "layers/node_gelu",
                             "layers/node_gelu_2", "layers/1/mlp/down/node_down", "norm/node_norm", "node_scale",
                             "node_last"});
  CHECK(paths.constants == Paths{"layers/0/attn/val_1", "val_2", "val_unread", "layers/0/mask"});
}

TEST_CASE("module paths: names with a path are kept, and a layer of one node has its name", "[events]") {
  Graph graph = Chain({{"/encoder/layers.0/MatMul", ""},
                       {"Relu_7", ""},
                       {"/encoder/layers.0/norm/Add", ""},
                       {"layer1.0.conv1", "layer1.0.conv1.weight"},
                       {"fc", "fc.weight"}});
  for (const char* name : {"layer1.0.conv1.weight", "fc.weight"}) {
    graph.variables.push_back({name, DType::kF32, {1}, VariableKind::kParameter, {}});
  }

  CHECK(FindModulePaths(graph).nodes == Paths{"encoder/layers.0/MatMul", "encoder/layers.0/Relu_7",
                                              "encoder/layers.0/norm/Add", "layer1/0/conv1", "fc"});
}

}  // namespace
}  // namespace lockstep::chief
