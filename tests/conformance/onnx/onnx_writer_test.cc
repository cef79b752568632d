// What the writer of ONNX files writes is read again as a graph that computes the same.
#include "common/graph/onnx/onnx_writer.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/build/build_metagraph.h"
#include "common/graph/graph_editor.h"
#include "common/graph/initial_state.h"
#include "common/graph/onnx/import.h"
#include "common/graph/passes/forms.h"
#include "common/graph/passes/serving_graph.h"
#include "common/random/random.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"
#include "common/storage/memory/memory_storage.h"
#include "protos/onnx.pb.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep {
namespace {

using Catch::Contains;
using Values = std::map<std::string, Tensor>;

constexpr int64_t kBatch = 3;

std::string Folder() {
  const char* base = std::getenv("TEST_TMPDIR");
  return absl::StrCat(base == nullptr ? "/tmp" : base, "/onnx_writer");
}

// Numbers of a stream of the name; whole ones below 7.
Tensor Random(const std::string& name, DType dtype, const Shape& shape) {
  const RandomStream stream = RandomStream::For(5, StreamOfName(name));
  Tensor tensor = Tensor::Zeros(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (dtype == DType::kF32) tensor.elements<float>()[i] = SymmetricUnit(stream.At(i));
    if (dtype == DType::kI64) tensor.elements<int64_t>()[i] = stream.At(i) % 7;
  }
  return tensor;
}

absl::StatusOr<Tensor> RandomVariable(const Variable& variable) {
  Tensor value = Random(variable.name, variable.dtype, variable.shape);
  // Variances are positive.
  if (variable.kind == VariableKind::kStatistic) {
    for (float& element : value.elements<float>()) element = element * element + 0.5f;
  }
  return value;
}

// The outputs of a graph in its evaluation form, by the reference kernels.
std::vector<Tensor> Evaluate(Graph graph, int64_t batch, const std::function<Tensor(const Variable&)>& variable_of) {
  UseEvaluationForms(&graph);
  BindBatch(&graph, batch);
  Values values;
  for (const GraphInput& input : graph.inputs) values[input.name] = Random(input.name, input.dtype, input.shape);
  for (const Variable& variable : graph.variables) values[variable.name] = variable_of(variable);
  for (const Constant& constant : graph.constants) values[constant.name] = constant.value->Clone();
  for (const Node& node : graph.nodes) {
    std::vector<const Tensor*> inputs;
    for (const std::string& input : node.inputs) inputs.push_back(input.empty() ? nullptr : &values.at(input));
    auto outputs = device::EvaluateNode(node, inputs);
    INFO(node.name << ": " << outputs.status());
    REQUIRE(outputs.ok());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) values[node.outputs[i]] = std::move((*outputs)[i]);
    }
  }
  std::vector<Tensor> outputs;
  for (const std::string& output : graph.outputs) outputs.push_back(values.at(output).Clone());
  return outputs;
}

void CheckClose(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].shape() == b[i].shape());
    for (int64_t e = 0; e < a[i].num_elements(); ++e) {
      REQUIRE(a[i].elements<float>()[e] == Approx(b[i].elements<float>()[e]).epsilon(1e-5).margin(1e-6));
    }
  }
}

struct Case {
  std::string name;
  ModelSpec model;
  DType dtype = DType::kF32;
  Shape sample;
};

std::vector<Case> Cases() {
  const auto transformer = [](const char* name) {
    return ModelSpec{.architecture = name,
                     .dropout = 0.1,
                     .layers = 1,
                     .heads = 2,
                     .width = 8,
                     .context = 9,
                     .vocabulary = 7,
                     .patch = 2};
  };
  return {{"mlp",
           {.architecture = "mlp", .hidden_sizes = {5}, .dropout = 0.25, .batch_norm = true},
           DType::kF32,
           {kBatchDim, 2, 3}},
          {"lenet", {.architecture = "lenet"}, DType::kF32, {kBatchDim, 1, 12, 12}},
          {"resnet18", {.architecture = "resnet18", .small_images = true}, DType::kF32, {kBatchDim, 1, 4, 4}},
          {"gpt2", transformer("gpt2"), DType::kI64, {kBatchDim, 6}},
          {"bert", transformer("bert"), DType::kI64, {kBatchDim, 6}},
          {"vit", transformer("vit"), DType::kF32, {kBatchDim, 3, 4, 4}}};
}

ImportedModel ReadAgain(const std::string& name, int64_t batch) {
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  options.batch = batch;
  auto model = ImportOnnx(ReadOnnxFile(absl::StrCat(Folder(), "/", name)).value(), options);
  INFO(model.status());
  REQUIRE(model.ok());
  return *std::move(model);
}

TEST_CASE("onnx writer: a model that is written and read again trains the same weights and computes the same",
          "[onnx]") {
  const Case test = GENERATE(from_range(Cases()));
  const int64_t external = GENERATE(int64_t{1} << 30, int64_t{0});
  CAPTURE(test.name, external);
  const auto storage = LocalStorage::Create(Folder()).value();
  const Graph graph = BuildArchitecture(test.model, {"inputs", test.dtype, test.sample}).value();

  const auto written = WriteOnnx(graph, RandomVariable, {.batch = 2, .external_bytes = external}, *storage, "m.onnx");
  INFO(written.status());
  REQUIRE(written.ok());
  const ImportedModel again = ReadAgain("m.onnx", kBatch);

  CHECK(written->open_batch);
  CHECK(written->opset == 20);
  CHECK(written->external == (external == 0));
  CHECK(again.warnings.empty());
  std::map<std::string, VariableKind> expected, found;
  for (const Variable& variable : graph.variables) expected[variable.name] = variable.kind;
  for (const Variable& variable : again.graph.variables) found[variable.name] = variable.kind;
  CHECK(found == expected);
  CHECK(again.graph.nodes.size() == graph.nodes.size());
  CheckClose(Evaluate(graph, kBatch, [](const Variable& v) { return RandomVariable(v).value(); }),
             Evaluate(again.graph, kBatch, [&](const Variable& v) { return again.initial.at(v.name).Clone(); }));
}

TEST_CASE("onnx writer: a serving graph has no dropout, no labels, and running statistics", "[onnx]") {
  MetaGraphRequest request;
  request.model = {.architecture = "mlp", .hidden_sizes = {5}, .dropout = 0.25, .batch_norm = true};
  request.inputs = {{"inputs", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, 6}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.schedule.lr = 0.1;
  request.pass_batch = 4;
  const MetaGraph metagraph = BuildMetaGraph(request).value();

  const Graph serving = MakeServingGraph(metagraph);

  REQUIRE(serving.inputs.size() == 1);
  CHECK(serving.inputs[0].name == "inputs");
  for (const Node& node : serving.nodes) {
    CHECK(node.op != OpType::kDropout);
    if (node.op == OpType::kBatchNormalization) {
      CHECK_FALSE(std::get<BatchNormAttributes>(node.attributes).training_mode);
    }
  }
  const auto storage = LocalStorage::Create(Folder()).value();
  REQUIRE(WriteOnnx(serving, RandomVariable, {.batch = 4}, *storage, "s.onnx").ok());
  const ImportedModel again = ReadAgain("s.onnx", kBatch);
  CheckClose(Evaluate(metagraph.forward, kBatch, [](const Variable& v) { return RandomVariable(v).value(); }),
             Evaluate(again.graph, kBatch, [&](const Variable& v) { return again.initial.at(v.name).Clone(); }));
}

// x [batch, 4] through one reshape whose shape holds a batch of 2.
Graph Reshaping(const std::vector<int64_t>& shape) {
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {kBatchDim, 4}}};
  graph.nodes = {{"r", OpType::kReshape, {"x"}, {"y"}, ReshapeAttributes{shape, false}}};
  graph.outputs = {"y"};
  return graph;
}

// The products of all pairs of samples, through a reshape that holds the batch of 2 twice.
Graph PairsReshaped() {
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {kBatchDim, 4}}};
  graph.nodes = {{"t", OpType::kTranspose, {"x"}, {"t"}, TransposeAttributes{{1, 0}}},
                 {"p", OpType::kMatMul, {"x", "t"}, {"p"}, NoAttributes{}},
                 {"r", OpType::kReshape, {"p"}, {"y"}, ReshapeAttributes{{2, 2}, false}}};
  graph.outputs = {"y"};
  return graph;
}

TEST_CASE("onnx writer: a batch that a model was read with is taken out where that is safe", "[onnx]") {
  const auto storage = LocalStorage::Create(Folder()).value();

  const auto opened = WriteOnnx(Reshaping({4, 2}), RandomVariable, {.batch = 2}, *storage, "open.onnx");
  const auto fixed = WriteOnnx(PairsReshaped(), RandomVariable, {.batch = 2}, *storage, "fixed.onnx");

  REQUIRE(opened.ok());
  CHECK(opened->open_batch);
  Graph again = ReadAgain("open.onnx", 5).graph;
  BindBatch(&again, 5);
  REQUIRE(InferShapes(&again).ok());
  CHECK(again.values.at("y").shape == Shape{10, 2});
  REQUIRE(fixed.ok());
  CHECK_FALSE(fixed->open_batch);
  CHECK(ReadAgain("fixed.onnx", 2).graph.nodes.size() == 3);
  // Samples side by side are found, too.
  const auto beside = WriteOnnx(Reshaping({1, 8}), RandomVariable, {.batch = 2}, *storage, "beside.onnx");
  REQUIRE(beside.ok());
  CHECK(beside->open_batch);
}

TEST_CASE("onnx writer: a file for one batch alone says every shape, and no model pretends to another", "[onnx]") {
  const auto storage = LocalStorage::Create(Folder()).value();
  for (const int64_t batch : {2, 5}) {
    const auto written =
        WriteOnnx(Reshaping({4, 2}), RandomVariable, {.batch = 2, .only_batch = batch}, *storage, "only.onnx");
    REQUIRE(written.ok());
    CHECK_FALSE(written->open_batch);
    std::ifstream file(Folder() + "/only.onnx", std::ios::binary);
    onnx::ModelProto model;
    REQUIRE(model.ParseFromIstream(&file));
    CHECK(model.graph().input(0).type().tensor_type().shape().dim(0).dim_value() == batch);
    CHECK(model.graph().output(0).type().tensor_type().shape().dim(0).dim_value() == 2 * batch);
  }
  const auto other = WriteOnnx(PairsReshaped(), RandomVariable, {.batch = 2, .only_batch = 3}, *storage, "no.onnx");
  CHECK(absl::IsInvalidArgument(other.status()));
  CHECK(WriteOnnx(PairsReshaped(), RandomVariable, {.batch = 2, .only_batch = 2}, *storage, "same.onnx").ok());
}

TEST_CASE("onnx writer: newer ops raise the opset, our own become what they stand for", "[onnx]") {
  const auto storage = LocalStorage::Create(Folder()).value();
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {kBatchDim, 4, 6}}};
  graph.variables = {{"c", DType::kF32, {4}, VariableKind::kParameter, {}},
                     {"r", DType::kF32, {6}, VariableKind::kParameter, {}}};
  graph.nodes = {{"group", OpType::kGroupNormalization, {"x", "c", "c"}, {"g"}, GroupNormAttributes{2, 1e-5}},
                 {"scale", OpType::kScale, {"g"}, {"s"}, ScaleAttributes{0.25}},
                 {"product", OpType::kBatchMatMul, {"s", "x"}, {"p"}, BatchMatMulAttributes{true, false}}};
  graph.outputs = {"p"};
  const auto of = [](const Variable& v) { return RandomVariable(v).value(); };

  const auto group = WriteOnnx(graph, RandomVariable, {}, *storage, "group.onnx");
  graph.nodes.push_back({"root", OpType::kRmsNormalization, {"p", "r"}, {"y"}, LayerNormAttributes{-1, 1e-5}});
  graph.outputs = {"y"};
  const auto root = WriteOnnx(graph, RandomVariable, {}, *storage, "root.onnx");

  REQUIRE(group.ok());
  CHECK(group->opset == 21);
  INFO(root.status());
  REQUIRE(root.ok());
  CHECK(root->opset == 23);
  const ImportedModel again = ReadAgain("root.onnx", kBatch);
  CheckClose(Evaluate(graph, kBatch, of),
             Evaluate(again.graph, kBatch, [&](const Variable& v) { return again.initial.at(v.name).Clone(); }));
}

TEST_CASE("onnx writer: ops without a counterpart are refused by name, and the old file stays", "[onnx]") {
  const auto storage = LocalStorage::Create(Folder()).value();
  Graph graph = Reshaping({-1, 2});
  REQUIRE(WriteOnnx(graph, RandomVariable, {}, *storage, "kept.onnx").ok());
  const auto before = std::filesystem::file_size(Folder() + "/kept.onnx");
  graph.nodes.push_back({"loss", OpType::kPointwiseLoss, {"y", "y"}, {"l"}, PointwiseLossAttributes{}});
  graph.outputs = {"l"};

  const auto refused = WriteOnnx(graph, RandomVariable, {}, *storage, "kept.onnx");
  const auto unread = WriteOnnx(Reshaping({-1, 2}), RandomVariable, {}, *storage, "no/such/folder.onnx");

  CHECK_THAT(std::string(refused.status().message()), Contains("node 'loss'") && Contains("no counterpart"));
  CHECK(std::filesystem::file_size(Folder() + "/kept.onnx") == before);
  CHECK_FALSE(unread.ok());
}

// x [batch, 4] times w, whose elements lie beside the model.
Graph Product(int64_t columns) {
  Graph graph;
  graph.inputs = {{"x", DType::kF32, {kBatchDim, 4}}};
  graph.variables = {{"w", DType::kF32, {4, columns}, VariableKind::kParameter, {}}};
  graph.nodes = {{"product", OpType::kMatMul, {"x", "w"}, {"y"}, {}}};
  graph.outputs = {"y"};
  return graph;
}

TEST_CASE("onnx writer: whenever it is killed, no model reads the weights of another", "[onnx]") {
  const OnnxWriteOptions beside{.external_bytes = 0};
  const auto write = [&](Storage& storage, int64_t columns) {
    return WriteOnnx(Product(columns), RandomVariable, beside, storage, "m.onnx").status();
  };
  const auto read = [](const Storage& storage) {
    return std::pair{ReadWholeFile(storage, "m.onnx", 1 << 20).value_or(""),
                     ReadWholeFile(storage, "m.onnx.data", 1 << 20).value_or("")};
  };
  MemoryStorage undisturbed;
  REQUIRE(write(undisturbed, 300).ok());
  const auto before = read(undisturbed);
  undisturbed.SetFaults({});
  REQUIRE(write(undisturbed, 500).ok());
  const auto after = read(undisturbed);
  const int64_t operations = undisturbed.operations();
  CHECK(before != after);

  for (int64_t at = 0; at < operations; ++at) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      INFO("killed at operation " << at << ", seed " << seed);
      MemoryStorage storage;
      REQUIRE(write(storage, 300).ok());
      storage.SetFaults({.at = {{at, StorageFaults::Kind::kCrash}}});
      CHECK_FALSE(write(storage, 500).ok());
      storage.Restart(MemoryStorage::Survival::kSome, seed);
      const auto found = read(storage);
      CHECK((found.first.empty() || found == before || found == after));
    }
  }
}

}  // namespace
}  // namespace lockstep
