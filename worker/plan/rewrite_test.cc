#include "worker/plan/rewrite.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "common/graph/graph_editor.h"
#include "common/graph/passes/reduce_precision.h"
#include "worker/device/choice/devices.h"
#include "worker/plan/plan.h"
#include "worker/plan/plan_test_models.h"

namespace lockstep::worker {
namespace {

TransposeAttributes Perm(std::vector<int64_t> perm) { return {std::move(perm)}; }

// y = (x w^T + b)^T, over a stack of matrices, with the weights stored transposed; and what else reads the product.
Graph Linear(bool second_reader) {
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {3, 4, 5}}};
  graph.variables = {{.name = "w", .shape = {7, 5}}, {.name = "b", .shape = {7}}};
  graph.nodes = {{"wt", OpType::kTranspose, {"w"}, {"wt"}, Perm({1, 0})},
                 {"product", OpType::kMatMul, {"x", "wt"}, {"product"}, NoAttributes{}},
                 {"sum", OpType::kAdd, {"product", "b"}, {"sum"}, NoAttributes{}},
                 {"y", OpType::kTranspose, {"sum"}, {"y"}, Perm({0, 2, 1})}};
  graph.outputs = {"y"};
  if (second_reader) {
    graph.nodes.push_back({"relu", OpType::kRelu, {"product"}, {"relu"}, NoAttributes{}});
    graph.outputs.push_back("relu");
  }
  MustOk(InferShapes(&graph));
  return graph;
}

// Products of an operand with itself, transposed in all ways, whose results are transposed.
Graph Products() {
  Graph graph;
  graph.inputs = {{"a", DType::kF32, {2, 3, 4}}, {"b", DType::kF32, {2, 3, 6}}, {"c", DType::kF32, {3, 6}}};
  graph.nodes = {{"at", OpType::kTranspose, {"a"}, {"at"}, Perm({0, 2, 1})},
                 {"p", OpType::kMatMul, {"at", "b"}, {"p"}, NoAttributes{}},
                 {"pt", OpType::kTranspose, {"p"}, {"pt"}, Perm({0, 2, 1})},
                 {"q", OpType::kBatchMatMul, {"b", "a"}, {"q"}, BatchMatMulAttributes{true, false}},
                 {"qt", OpType::kTranspose, {"q"}, {"qt"}, Perm({0, 2, 1})},
                 {"ct", OpType::kTranspose, {"c"}, {"ct"}, Perm({})},
                 {"g", OpType::kGemm, {"c", "ct"}, {"g"}, GemmAttributes{0.5, 0.0, true, true}},
                 {"gt", OpType::kTranspose, {"g"}, {"gt"}, Perm({1, 0})},
                 {"batch", OpType::kTranspose, {"p"}, {"batch"}, Perm({1, 0, 2})}};
  graph.outputs = {"pt", "qt", "gt", "batch"};
  MustOk(InferShapes(&graph));
  return graph;
}

// The gradient of max_pool(relu(x)), with windows that overlap.
Graph PooledRelu() {
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {2, 3, 6, 7}}, {"dy", DType::kF32, {2, 3, 4, 5}}};
  PoolAttributes pool;
  pool.kernel_shape = {3, 3};
  pool.strides = {1, 1};
  PoolAttributes gradient = pool;
  gradient.input_shape = {2, 3, 6, 7};
  graph.nodes = {{"relu", OpType::kRelu, {"x"}, {"relu"}, NoAttributes{}},
                 {"pool", OpType::kMaxPoolWithArgmax, {"relu"}, {"y", "argmax"}, pool},
                 {"dpool", OpType::kMaxPoolGrad, {"dy", "argmax"}, {"dpool"}, gradient},
                 {"dx", OpType::kReluGrad, {"dpool", "relu"}, {"dx"}, NoAttributes{}}};
  graph.outputs = {"dx"};
  MustOk(InferShapes(&graph));
  return graph;
}

int Count(const Graph& graph, OpType op) {
  int count = 0;
  for (const Node& node : graph.nodes) count += node.op == op ? 1 : 0;
  return count;
}

std::vector<std::vector<float>> Compute(const Graph& graph, bool fuse, device::DeviceKind kind) {
  const auto device = Must(device::MakeDevice(kind, {}));
  std::vector<std::vector<float>> variables;
  std::map<std::string, std::byte*> addresses;
  for (const Variable& variable : graph.variables) {
    auto& values = variables.emplace_back(NumElements(variable.shape));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 0.25f * static_cast<float>((i * 7 + 3) % 11) - 1.0f;
    addresses[variable.name] = reinterpret_cast<std::byte*>(values.data());
  }
  const auto plan = Must(Plan::Make(device.get(), graph, addresses, {.fuse = fuse}));
  const TestInputs inputs(plan->inputs(), 5);
  MustOk(plan->RefreshVariables());
  MustOk(plan->RunPass(inputs.bytes, {}));
  std::vector<std::vector<float>> outputs;
  for (const std::string& name : graph.outputs) outputs.push_back(ReadFloats(*plan, name));
  return outputs;
}

void CheckSame(const Graph& graph) {
  for (const auto kind : {device::DeviceKind::kReference, device::DeviceKind::kCpu}) {
    const auto plain = Compute(graph, false, device::DeviceKind::kReference);
    const auto rewritten = Compute(graph, true, kind);
    for (size_t i = 0; i < plain.size(); ++i) {
      REQUIRE(rewritten[i].size() == plain[i].size());
      for (size_t j = 0; j < plain[i].size(); ++j) CHECK(rewritten[i][j] == Approx(plain[i][j]).margin(1e-5));
    }
  }
}

TEST_CASE("rewrite: a linear layer over a stack of matrices is one product with its bias", "[plan]") {
  const Graph graph = RewriteForPlan(Linear(false));

  CHECK(Count(graph, OpType::kGemm) == 1);
  CHECK(Count(graph, OpType::kMatMul) + Count(graph, OpType::kBatchMatMul) + Count(graph, OpType::kAdd) == 0);
  CHECK(Count(graph, OpType::kTranspose) == 1);  // behind the bias
  CheckSame(Linear(false));
}

TEST_CASE("rewrite: a model may have values called as those that rewriting adds", "[plan]") {
  Graph graph = Linear(false);
  graph.inputs.push_back({"product.rows", DType::kF32, {3, 4, 7}});
  graph.nodes.insert(graph.nodes.begin(),
                     {"product.shape", OpType::kRelu, {"product.rows"}, {"product.product"}, NoAttributes{}});
  graph.nodes.push_back({"z", OpType::kAdd, {"sum", "product.product"}, {"z"}, NoAttributes{}});
  graph.nodes.push_back({"rows", OpType::kRelu, {"product.rows"}, {"rows"}, NoAttributes{}});
  graph.outputs = {"y", "z", "rows"};
  MustOk(InferShapes(&graph));

  CHECK(Count(RewriteForPlan(graph), OpType::kGemm) == 1);
  CheckSame(graph);
}

TEST_CASE("rewrite: with bf16 a linear layer is one product with its bias too", "[plan]") {
  Graph graph = Linear(false);
  graph.nodes.push_back({"wide", OpType::kCast, {"y"}, {"wide"}, CastAttributes{DType::kF32}});
  graph.outputs = {"wide"};
  MustOk(InferShapes(&graph));
  MustOk(ReducePrecision(&graph));

  const Graph rewritten = RewriteForPlan(graph);

  CHECK(Count(rewritten, OpType::kGemm) == 1);
  CHECK(Count(rewritten, OpType::kMatMul) == 0);
  CHECK(Count(rewritten, OpType::kAdd) == 0);
}

TEST_CASE("rewrite: a product that somebody else reads keeps its result", "[plan]") {
  const Graph graph = RewriteForPlan(Linear(true));

  CHECK(Count(graph, OpType::kAdd) == 1);
  CheckSame(Linear(true));
}

TEST_CASE("rewrite: products read and write transposed", "[plan]") {
  const Graph graph = RewriteForPlan(Products());

  // p is read twice, and one reader moves the batch.
  CHECK(Count(graph, OpType::kTranspose) == 2);
  CheckSame(Products());
}

TEST_CASE("rewrite: the gradient of a ReLU is applied to what a pool kept of it", "[plan]") {
  const Graph graph = RewriteForPlan(PooledRelu());

  const Shape pooled = {2, 3, 4, 5};
  for (const Node& node : graph.nodes) {
    if (node.op == OpType::kReluGrad) CHECK(graph.values.at(node.outputs[0]).shape == pooled);
  }
  CHECK(graph.nodes.back().op == OpType::kMaxPoolGrad);
  CheckSame(PooledRelu());
}

}  // namespace
}  // namespace lockstep::worker
