// Attention as models write it, and as one op: the same results and gradients, in float64.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "common/graph/differentiate.h"
#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "common/graph/passes/fuse_attention.h"
#include "common/graph/passes/training_graph.h"
#include "tests/gradients/gradient_check.h"
#include "tests/gradients/graph_runner.h"

namespace lockstep {
namespace {

constexpr int64_t kFusedBatch = 2;
constexpr int64_t kHeads = 4;
constexpr int64_t kFusedLength = 5;
constexpr int64_t kSize = 3;
constexpr double kHidden = -std::numeric_limits<double>::infinity();

// Writes graphs whose inputs are trained.
struct Writer {
  Graph graph;
  int count = 0;

  std::string Parameter(const std::string& name, Shape shape) {
    graph.variables.push_back({name, DType::kF64, shape, VariableKind::kParameter, {}});
    graph.values[name] = {DType::kF64, std::move(shape)};
    return name;
  }
  std::string Constant(Tensor value) {
    const std::string name = "c" + std::to_string(count++);
    AppendConstant(&graph, name, std::move(value));
    return name;
  }
  std::string Number(double value) { return Constant(Tensor::Of<double>({}, {value})); }
  std::string Op(OpType op, std::vector<std::string> inputs, OpAttributes attributes = NoAttributes{},
                 int outputs = 1) {
    Node node{"n" + std::to_string(count++), op, std::move(inputs), {}, std::move(attributes)};
    for (int i = 0; i < outputs; ++i) node.outputs.push_back(node.name + "." + std::to_string(i));
    const std::string first = node.outputs[0];
    const absl::Status status = AppendNode(&graph, std::move(node));
    INFO(status.ToString());
    REQUIRE(status.ok());
    return first;
  }
  std::string Reshape(const std::string& x, Shape shape) {
    return Op(OpType::kReshape, {x}, ReshapeAttributes{std::move(shape), true});
  }
  std::string Transpose(const std::string& x, std::vector<int64_t> order) {
    return Op(OpType::kTranspose, {x}, TransposeAttributes{std::move(order)});
  }
  // [batch, heads, length, size], from rows as a dense layer leaves them.
  std::string Heads(const std::string& rows, int64_t heads) {
    return Transpose(Reshape(rows, {kFusedBatch, kFusedLength, heads, kSize}), {0, 2, 1, 3});
  }
  std::string Rows(const std::string& name, int64_t heads) {
    return Parameter(name, {kFusedBatch, kFusedLength, heads * kSize});
  }
  std::string Gather(const std::string& y) {
    return Reshape(Transpose(y, {0, 2, 1, 3}), {kFusedBatch, kFusedLength, kHeads * kSize});
  }
  std::string Product(const std::string& a, const std::string& b) { return Op(OpType::kMatMul, {a, b}); }
  std::string Softmax(const std::string& x) { return Op(OpType::kSoftmax, {x}, SoftmaxAttributes{-1}); }
};

Tensor Causal(Shape shape, double hidden) {
  Tensor mask = Tensor::Zeros(DType::kF64, std::move(shape));
  for (int64_t i = 0; i < mask.num_elements(); ++i) {
    if (i % kFusedLength > i / kFusedLength % kFusedLength) mask.elements<double>()[static_cast<size_t>(i)] = hidden;
  }
  return mask;
}

// Every value that both graphs have in common by name, after one run on the same inputs.
void CheckSame(const Graph& plain, const Graph& fused, const std::vector<std::string>& values) {
  const auto a = GraphRunner::Make(plain);
  const auto b = GraphRunner::Make(fused);
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  for (GraphRunner* runner : {a->get(), b->get()}) {
    CaseNumbers dice(3);
    for (const Variable& variable : plain.variables) {
      const Tensor drawn = dice.Uniform(variable.shape);
      std::memcpy(runner->value(variable.name).data(), drawn.data(), static_cast<size_t>(drawn.byte_size()));
    }
    for (const GraphInput& input : plain.inputs) {
      for (int64_t& number : runner->value(input.name).elements<int64_t>()) number = dice.Int(1, 1000);
    }
    REQUIRE(runner->Run().ok());
  }
  for (const std::string& name : values) {
    const auto expected = (*a)->value(name).elements<double>();
    const auto got = (*b)->value(name).elements<double>();
    REQUIRE(expected.size() == got.size());
    double largest = 0;
    for (size_t i = 0; i < got.size(); ++i) largest = std::max(largest, std::abs(got[i] - expected[i]));
    INFO(name);
    CHECK(largest < 1e-12);
  }
}

// Fuses `writer`'s graph, whose result is `y`; returns the op's attributes. Results and gradients stay the same.
AttentionAttributes Fused(Writer writer, const std::string& y, size_t inputs) {
  Graph& plain = writer.graph;
  plain.outputs = {y};
  Graph fused = plain;
  REQUIRE(FuseAttention(&fused) == 1);
  RemoveDeadCode(&fused);
  AttentionAttributes attributes;
  for (const Node& node : fused.nodes) {
    CHECK(node.op != OpType::kSoftmax);
    CHECK(node.op != OpType::kMatMul);
    CHECK(node.op != OpType::kExpand);
    if (node.op != OpType::kAttention) continue;
    CHECK(node.inputs.size() == inputs);
    attributes = std::get<AttentionAttributes>(node.attributes);
  }
  std::vector<std::string> targets;
  for (const Variable& variable : plain.variables) {
    if (variable.kind == VariableKind::kParameter) targets.push_back(variable.name);
  }
  for (Graph* graph : {&plain, &fused}) {
    CaseNumbers dice(8);
    AppendConstant(graph, "weights", dice.Uniform(graph->values.at(y).shape));
    REQUIRE(AppendNode(graph, {"weighed", OpType::kMul, {y, "weights"}, {"weighed"}, {}}).ok());
    REQUIRE(AppendNode(graph, {"loss", OpType::kReduceSum, {"weighed"}, {"loss"}, ReduceAttributes{{}, false, false}})
                .ok());
    const auto gradients = Differentiate(graph, "loss", targets);
    INFO(gradients.status().ToString());
    REQUIRE(gradients.ok());
    for (size_t i = 0; i < targets.size(); ++i) RenameValue(graph, (*gradients)[i], "gradient of " + targets[i]);
  }
  std::vector<std::string> compared = {y};
  for (const std::string& target : targets) compared.push_back("gradient of " + target);
  CheckSame(plain, fused, compared);
  return attributes;
}

TEST_CASE("attention fusion: parts of one dense layer under a causal mask, with dropout", "[gradients]") {
  Writer w;
  w.graph.inputs.push_back({kRandomInput, DType::kI64, {4}});
  w.graph.values[kRandomInput] = {DType::kI64, {4}};
  const std::string qkv = w.Parameter("qkv", {kFusedBatch * kFusedLength, 3 * kHeads * kSize});
  const std::string q = w.Op(OpType::kSplit, {qkv}, SplitAttributes{1, std::vector<int64_t>(3, kHeads * kSize), 0}, 3);
  const std::string base = q.substr(0, q.size() - 1);
  const std::string k = w.Transpose(w.Reshape(base + "1", {kFusedBatch, kFusedLength, kHeads, kSize}), {0, 2, 3, 1});
  std::string x = w.Product(w.Heads(q, kHeads), k);
  x = w.Op(OpType::kMul, {x, w.Number(0.7)});
  x = w.Op(OpType::kAdd, {x, w.Constant(Causal({kFusedLength, kFusedLength}, kHidden))});
  x = w.Op(OpType::kDropoutTraining, {w.Softmax(x), kRandomInput}, DropoutAttributes{0.4, true, 12}, 2);
  const std::string y = w.Gather(w.Product(x, w.Heads(base + "2", kHeads)));

  const AttentionAttributes attributes = Fused(w, y, 5);

  CHECK(attributes == AttentionAttributes{0.7, true, true, true, true, true, kHeads, 0.4, 12});
}

TEST_CASE("attention fusion: as PyTorch exports it, factors at both operands and keys transposed in one dimension less",
          "[gradients]") {
  Writer w;
  const std::string q = w.Heads(w.Rows("q", kHeads), kHeads);
  const std::string k = w.Heads(w.Rows("k", kHeads), kHeads);
  const std::string v = w.Heads(w.Rows("v", kHeads), kHeads);
  std::string across = w.Transpose(w.Reshape(k, {kFusedBatch * kHeads, kFusedLength, kSize}), {0, 2, 1});
  across = w.Reshape(across, {kFusedBatch, kHeads, kSize, kFusedLength});
  std::string x = w.Product(w.Op(OpType::kMul, {q, w.Number(0.5)}), w.Op(OpType::kMul, {across, w.Number(0.5)}));
  x = w.Op(OpType::kAdd, {x, w.Constant(Causal({1, 1, kFusedLength, kFusedLength}, -1e38))});
  const std::string y = w.Gather(w.Product(w.Softmax(x), v));

  const AttentionAttributes attributes = Fused(w, y, 3);

  CHECK(attributes == AttentionAttributes{0.25, true, true, true, true, true, 0, 0.0, 0});
}

TEST_CASE("attention fusion: heads of queries that share keys and values", "[gradients]") {
  Writer w;
  const auto repeated = [&](const std::string& name) {
    const std::string few = w.Heads(w.Rows(name, kHeads / 2), kHeads / 2);
    const std::string apart = w.Reshape(few, {kFusedBatch, kHeads / 2, 1, kFusedLength, kSize});
    const std::string wide =
        w.Op(OpType::kExpand, {apart}, ExpandAttributes{{kFusedBatch, kHeads / 2, 2, kFusedLength, kSize}});
    return w.Reshape(wide, {kFusedBatch, kHeads, kFusedLength, kSize});
  };
  const std::string q = w.Heads(w.Rows("q", kHeads), kHeads);
  std::string x = w.Product(q, w.Transpose(repeated("k"), {0, 1, 3, 2}));
  x = w.Op(OpType::kDiv, {x, w.Number(2.0)});
  const std::string y = w.Gather(w.Product(w.Softmax(x), repeated("v")));

  const AttentionAttributes attributes = Fused(w, y, 3);

  CHECK(attributes == AttentionAttributes{0.5, false, true, true, true, true, 0, 0.0, 0});
}

TEST_CASE("attention fusion: as the Attention op of later opsets is read, and heads repeated on the way to a product",
          "[gradients]") {
  Writer w;
  const auto wide = [&](const std::string& name) {
    const std::string few = w.Heads(w.Rows(name, kHeads / 2), kHeads / 2);
    const std::string apart = w.Op(OpType::kUnsqueeze, {few}, SqueezeAttributes{{2}});
    return w.Op(OpType::kExpand, {apart}, ExpandAttributes{{kFusedBatch, kHeads / 2, 2, kFusedLength, kSize}});
  };
  const std::string q = w.Heads(w.Rows("q", kHeads), kHeads);
  const std::string v = w.Reshape(wide("v"), {kFusedBatch, kHeads, kFusedLength, kSize});
  std::string x;
  SECTION("keys as they are, and a scale") {
    const std::string k = w.Reshape(wide("k"), {kFusedBatch, kHeads, kFusedLength, kSize});
    x = w.Op(OpType::kBatchMatMul, {q, k}, BatchMatMulAttributes{false, true});
    x = w.Op(OpType::kScale, {x}, ScaleAttributes{0.5});
  }
  SECTION("keys repeated and merged at once, and a factor") {
    const std::string k = w.Reshape(wide("k"), {kFusedBatch * kHeads, kFusedLength, kSize});
    const std::string across = w.Reshape(w.Transpose(k, {0, 2, 1}), {kFusedBatch, kHeads, kSize, kFusedLength});
    x = w.Product(q, w.Op(OpType::kScale, {across}, ScaleAttributes{0.5}));
  }
  const std::string y = w.Op(OpType::kBatchMatMul, {w.Softmax(x), v}, BatchMatMulAttributes{});

  const AttentionAttributes attributes = Fused(w, y, 3);

  CHECK(attributes == AttentionAttributes{0.5, false, true, true, true, false, 0, 0.0, 0});
}

TEST_CASE("attention fusion: masks that are no triangle are added, conditions too", "[gradients]") {
  Tensor padding = Tensor::Zeros(DType::kF64, {kFusedBatch, 1, 1, kFusedLength});
  for (const size_t i : {3, 4, 9}) padding.elements<double>()[i] = kHidden;
  Writer w;
  const std::string q = w.Parameter("q", {kFusedBatch, kHeads, kFusedLength, kSize});
  const std::string k = w.Parameter("k", {kFusedBatch, kHeads, kFusedLength, kSize});
  const std::string v = w.Parameter("v", {kFusedBatch, kHeads, kFusedLength, 2});
  const std::string scores = w.Product(q, w.Transpose(k, {0, 1, 3, 2}));

  SECTION("a constant") {
    const std::string y = w.Product(w.Softmax(w.Op(OpType::kAdd, {w.Constant(std::move(padding)), scores})), v);
    CHECK(Fused(w, y, 4) == AttentionAttributes{});
  }
  SECTION("what is not trained") {
    w.graph.variables.push_back({"mask", DType::kF64, {kFusedLength, kFusedLength}, VariableKind::kFrozen, {}});
    w.graph.values["mask"] = {DType::kF64, {kFusedLength, kFusedLength}};
    const std::string y = w.Product(w.Softmax(w.Op(OpType::kAdd, {scores, "mask"})), v);
    CHECK(Fused(w, y, 4) == AttentionAttributes{});
  }
  SECTION("zeros") {
    const std::string zeros = w.Constant(Tensor::Zeros(DType::kF64, {1, 1, 1, kFusedLength}));
    const std::string y = w.Product(w.Softmax(w.Op(OpType::kAdd, {scores, zeros})), v);
    CHECK(Fused(w, y, 3) == AttentionAttributes{});
  }
  SECTION("a condition") {
    Tensor sees = Tensor::Zeros(DType::kBool, {kFusedLength, kFusedLength});
    for (int64_t i = 0; i < kFusedLength * kFusedLength; ++i) {
      sees.elements<bool>()[static_cast<size_t>(i)] = i % kFusedLength <= i / kFusedLength;
    }
    const std::string x = w.Op(OpType::kWhere, {w.Constant(std::move(sees)), scores, w.Number(-3e38)});
    CHECK(Fused(w, w.Product(w.Softmax(x), v), 3) == AttentionAttributes{.causal = true});
  }
}

TEST_CASE("attention fusion: what is something else stays", "[gradients]") {
  Writer w;
  const std::string q = w.Parameter("q", {kFusedBatch, kHeads, kFusedLength, kSize});
  const std::string k = w.Parameter("k", {kFusedBatch, kHeads, kFusedLength, kSize});
  const std::string v = w.Parameter("v", {kFusedBatch, kHeads, kFusedLength, kSize});
  const std::string scores = w.Product(q, w.Transpose(k, {0, 1, 3, 2}));
  std::string y;
  int found = 0;
  SECTION("but this does not") { found = 1; }
  SECTION("scores that somebody else reads") { w.graph.outputs.push_back(scores); }
  SECTION("a softmax over the queries") { y = w.Product(w.Op(OpType::kSoftmax, {scores}, SoftmaxAttributes{2}), v); }
  SECTION("a mask that is trained") {
    y = w.Product(w.Softmax(w.Op(OpType::kAdd, {scores, w.Parameter("bias", {kHeads, kFusedLength, kFusedLength})})),
                  v);
  }
  SECTION("a mask that is scaled") {
    const std::string masked = w.Op(OpType::kAdd, {scores, w.Constant(Causal({kFusedLength, kFusedLength}, -1e38))});
    y = w.Product(w.Softmax(w.Op(OpType::kMul, {masked, w.Number(0.5)})), v);
  }
  SECTION("a factor for each head") {
    const std::string factors = w.Parameter("factors", {kHeads, 1, 1});
    y = w.Product(w.Softmax(w.Op(OpType::kMul, {scores, factors})), v);
  }
  if (y.empty()) y = w.Product(w.Softmax(scores), v);
  w.graph.outputs.push_back(y);
  const std::vector<Node> before = w.graph.nodes;

  CHECK(FuseAttention(&w.graph) == found);
  CHECK((w.graph.nodes == before) == (found == 0));
}

}  // namespace
}  // namespace lockstep
