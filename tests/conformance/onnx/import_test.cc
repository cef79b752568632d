// What the importer makes of small models written out here, and what it refuses.
#include "common/graph/onnx/import.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/onnx/op_report.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep {
namespace {

using Catch::Contains;

// x [batch, 2] -> y, with `nodes` and `initialisers` in between, in protobuf's text form.
OnnxFile Model(const std::string& graph, const std::string& batch = "dim_param: 'batch'") {
  OnnxFile file;
  file.path = "m.onnx";
  file.sha256 = std::string(64, 'a');
  const std::string text = absl::StrCat(R"(
    ir_version: 8 opset_import { version: 17 }
    graph {
      input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { )",
                                        batch, R"( } dim { dim_value: 2 } } } } }
      output { name: 'y' })",
                                        graph, "}");
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &file.model));
  return file;
}

std::string Weight(const std::string& name, int rows, int columns) {
  std::string data;
  for (int i = 0; i < rows * columns; ++i) absl::StrAppend(&data, " float_data: ", i);
  return absl::StrCat(" initializer { name: '", name, "' data_type: 1 dims: ", rows, " dims: ", columns, data, " }");
}

absl::StatusOr<ImportedModel> Import(OnnxFile file) {
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  options.batch = 3;
  return ImportOnnx(std::move(file), options);
}

std::string Refusal(OnnxFile file) {
  const auto model = Import(std::move(file));
  REQUIRE_FALSE(model.ok());
  return std::string(model.status().message());
}

const char kProduct[] = "node { name: 'fc' op_type: 'MatMul' input: 'x' input: 'w' output: 'y' }";

TEST_CASE("import: initialisers become variables with their values, the batch stays open", "[onnx]") {
  const auto model = Import(Model(kProduct + Weight("w", 2, 3)));

  INFO(model.status().ToString());
  REQUIRE(model.ok());
  REQUIRE(model->graph.variables.size() == 1);
  CHECK(model->graph.variables[0].name == "w");
  CHECK(model->graph.variables[0].shape == Shape{2, 3});
  CHECK(model->graph.variables[0].init.file_sha256 == std::string(64, 'a'));
  CHECK(model->initial.at("w").elements<float>()[5] == 5.0f);
  CHECK(model->graph.inputs[0].shape == Shape{kBatchDim, 2});
  CHECK(model->graph.outputs == std::vector<std::string>{"y"});
}

TEST_CASE("import: PyTorch's signature decides what is trained", "[onnx]") {
  OnnxFile file = Model(R"(
    node { op_type: 'MatMul' input: 'x' input: 'w' output: 'p' }
    node { op_type: 'Mul' input: 'p' input: 'scale' output: 'y' })" +
                        Weight("w", 2, 3) + Weight("scale", 1, 3));
  auto* property = file.model.mutable_graph()->add_metadata_props();
  property->set_key("pkg.torch.export.ExportedProgram.graph_signature");
  property->set_value("\n# inputs\np_w: PARAMETER target='w'\nb_scale: BUFFER target='scale' persistent=True\n");

  const auto model = Import(std::move(file));

  REQUIRE(model.ok());
  REQUIRE(model->graph.variables.size() == 2);
  CHECK(model->graph.variables[0].name == "w");
  CHECK(model->graph.variables[0].kind == VariableKind::kParameter);
  CHECK(model->graph.variables[1].name == "scale");  // comes home as it went
  CHECK(model->graph.variables[1].kind == VariableKind::kFrozen);
  REQUIRE(model->graph.constants.size() == 1);
  CHECK(model->graph.constants[0].name == "scale.folded");
}

TEST_CASE("import: shape arithmetic folds away", "[onnx]") {
  auto model = Import(Model(R"(
    node { op_type: 'Shape' input: 'x' output: 's' }
    node { op_type: 'Slice' input: 's' input: 'zero' input: 'one' output: 'b' }
    node { op_type: 'Concat' input: 'b' input: 'rest' output: 'to' attribute { name: 'axis' type: 2 i: 0 } }
    node { op_type: 'Reshape' input: 'x' input: 'to' output: 'y' }
    initializer { name: 'zero' data_type: 7 dims: 1 int64_data: 0 }
    initializer { name: 'one' data_type: 7 dims: 1 int64_data: 1 }
    initializer { name: 'rest' data_type: 7 dims: 2 int64_data: 1 int64_data: -1 })"));

  INFO(model.status().ToString());
  REQUIRE(model.ok());
  REQUIRE(model->graph.nodes.size() == 1);
  BindBatch(&model->graph, 3);
  REQUIRE(InferShapes(&model->graph).ok());
  CHECK(model->graph.values.at("y").shape == Shape{3, 1, 2});
}

TEST_CASE("import: functions are written out, with the attributes of their call", "[onnx]") {
  OnnxFile file = Model(R"(node { name: 'call' op_type: 'Twice' domain: 'own' input: 'x' output: 'y'
                                  attribute { name: 'slope' type: 1 f: 0.25 } })");
  REQUIRE(google::protobuf::TextFormat::MergeFromString(R"(
    opset_import { domain: 'own' version: 1 }
    functions {
      name: 'Twice' domain: 'own' input: 'a' output: 'b' attribute: 'slope' opset_import { version: 17 }
      node { op_type: 'Relu' input: 'a' output: 'inner' }
      node { op_type: 'Tanh' input: 'inner' output: 'b' }
    })",
                                                        &file.model));

  const auto model = Import(std::move(file));

  INFO(model.status().ToString());
  REQUIRE(model.ok());
  REQUIRE(model->graph.nodes.size() == 2);
  CHECK(model->graph.nodes[0].outputs[0] == "call/inner");
  CHECK(model->graph.nodes[1].outputs[0] == "y");
}

TEST_CASE("import: what does not fit is refused by name, with a remedy", "[onnx]") {
  CHECK_THAT(Refusal(Model("node { name: 'n' op_type: 'MatMul' input: 'x' input: 'gone' output: 'y' }")),
             Contains("node 'n' (MatMul)") && Contains("'gone'") && Contains("initialiser is missing"));
  CHECK_THAT(Refusal(Model(R"(node { name: 'a' op_type: 'Add' input: 'x' input: 'q' output: 'p' }
                              node { name: 'b' op_type: 'Tanh' input: 'p' output: 'q' })")),
             Contains("node 'a' (Add)") && Contains("cycle"));
  CHECK_THAT(Refusal(Model("node { name: 'branch' op_type: 'If' input: 'x' output: 'y' }")),
             Contains("node 'branch' (If)") && Contains("needs a then_branch"));
  CHECK_THAT(Refusal(Model("node { name: 'round' op_type: 'Loop' input: 'x' output: 'y' }")),
             Contains("node 'round' (Loop)") && Contains("has no body"));
  CHECK_THAT(Refusal(Model("node { name: 'odd' op_type: 'NoSuchOp' input: 'x' output: 'y' }")),
             Contains("node 'odd' (NoSuchOp)") && Contains("not supported"));
  CHECK_THAT(Refusal(Model(kProduct + Weight("w", 2, 3), "dim_value: 8")),
             Contains("batches of 8") && Contains("has 3 samples") && Contains("torch.export.Dim"));
  CHECK_THAT(Refusal(Model(kProduct + Weight("w", 5, 3))), Contains("node 'fc' (MatMul)"));
  CHECK_THAT(Refusal(Model(kProduct + Weight("w", 2, 3) + Weight("w", 2, 3))), Contains("called 'w'"));
  CHECK_THAT(Refusal(Model(std::string(kProduct) + " initializer { name: 'w' data_type: 1 dims: 2 dims: 3 }")),
             Contains("tensor 'w'"));
  CHECK_THAT(Refusal(Model(std::string(kProduct) + " initializer { name: 'w' data_type: 1 dims: 1099511627776 "
                                                   "dims: 1099511627776 }")),
             Contains("tensor 'w'"));
  CHECK_THAT(Refusal(Model(R"(node { name: 'big' op_type: 'ConstantOfShape' input: 'dims' output: 'y' }
                              initializer { name: 'dims' data_type: 7 dims: 2 int64_data: 1000000
                                            int64_data: 1000000 })")),
             Contains("node 'big'") && Contains("bytes"));
}

TEST_CASE("model ops: every unsupported node is listed, not only the first", "[onnx]") {
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  const OnnxFile file = Model(R"(node { name: 'a' op_type: 'NonZero' input: 'x' output: 'p' }
                                 node { name: 'b' op_type: 'Tanh' input: 'x' output: 'q' }
                                 node { op_type: 'Own' domain: 'mine' input: 'q' output: 'r' }
                                 node { name: 'c' op_type: 'Unique' input: 'p' output: 'y' })");

  const auto report = ReportOps(file, options);

  REQUIRE(report.ok());
  CHECK_FALSE(report->ok());
  REQUIRE(report->unsupported.size() == 3);
  CHECK(report->unsupported[0].node == "a");
  CHECK_THAT(report->unsupported[0].reason, Contains("not supported"));
  CHECK(report->unsupported[1].node == "-> r");
  CHECK(report->unsupported[1].op == "mine.Own");
  CHECK(report->unsupported[2].op == "Unique");
  CHECK(report->ops.at("Tanh") == 1);
  CHECK_FALSE(report->import.ok());
}

TEST_CASE("model ops: a model of known ops is imported to see that it can be", "[onnx]") {
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;

  const auto good = ReportOps(Model(kProduct + Weight("w", 2, 3)), options);
  const auto bad = ReportOps(Model(kProduct + Weight("w", 3, 3)), options);

  REQUIRE(good.ok());
  CHECK(good->ok());
  CHECK(good->parameters == 1);
  REQUIRE(bad.ok());
  CHECK(bad->unsupported.empty());
  CHECK_THAT(std::string(bad->import.message()), Contains("node 'fc' (MatMul)"));
}

TEST_CASE("model ops: a model that can be read and has nothing to train on is not called trainable", "[onnx]") {
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  const std::string picks =
      "node { name: 'fc' op_type: 'MatMul' input: 'x' input: 'w' output: 'h' } "
      "node { name: 'pick' op_type: 'ArgMax' input: 'h' output: 'y' }";

  const auto report = ReportOps(Model(picks + Weight("w", 2, 3)), options);

  REQUIRE(report.ok());
  CHECK(report->import.ok());
  CHECK_FALSE(report->ok());
  CHECK_THAT(std::string(report->training.message()), Contains("float32"));
}

TEST_CASE("model ops: a model without parameters has nothing to train, and no stop is to blame", "[onnx]") {
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;

  const auto report = ReportOps(Model("node { name: 'n' op_type: 'Tanh' input: 'x' output: 'y' }"), options);

  REQUIRE(report.ok());
  CHECK(report->import.ok());
  CHECK_THAT(std::string(report->training.message()), Contains("nothing in the model reads a parameter"));
}

TEST_CASE("import: external data is read from the model's folder alone", "[onnx]") {
  const char* base = std::getenv("TEST_TMPDIR");
  const std::filesystem::path folder = std::filesystem::path(base == nullptr ? "/tmp" : base) / "import_test";
  std::filesystem::create_directories(folder / "model");
  for (const auto& path : {folder / "model" / "weights", folder / "secret"}) {
    std::ofstream file(path, std::ios::binary);
    for (const float value : {1.0f, 2.0f, 3.0f, 4.0f}) file.write(reinterpret_cast<const char*>(&value), 4);
  }
  std::filesystem::create_symlink(folder / "secret", folder / "model" / "link");
  const auto read = [&](const std::string& location, const std::string& offset) {
    onnx::TensorProto tensor;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("name: 'w' data_type: 1 dims: 2 data_location: 1 external_data { key: 'location' value: '",
                     location, "' } external_data { key: 'offset' value: '", offset, "' }"),
        &tensor));
    return ReadOnnxTensor(tensor, (folder / "model").string());
  };

  CHECK(read("weights", "8").value().elements<float>()[1] == 4.0f);
  CHECK_THAT(std::string(read("weights", "12").status().message()), Contains("truncated"));
  CHECK_THAT(std::string(read("weights", "-4").status().message()), Contains("offset -4"));
  CHECK_THAT(std::string(read("../secret", "0").status().message()), Contains("outside of the model's folder"));
  CHECK_THAT(std::string(read((folder / "secret").string(), "0").status().message()), Contains("outside"));
  CHECK_THAT(std::string(read("link", "0").status().message()), Contains("outside of the model's folder"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("import: a file that is no model says so", "[onnx]") {
  const char* base = std::getenv("TEST_TMPDIR");
  const std::string path = absl::StrCat(base == nullptr ? "/tmp" : base, "/no_model.onnx");
  std::ofstream(path, std::ios::binary) << "not a model at all";
  CHECK_THAT(std::string(ReadOnnxFile(path).status().message()), Contains("is not an ONNX model"));
  CHECK(ReadOnnxFile(path + ".none").status().code() == absl::StatusCode::kNotFound);
  const std::string whole = Model(kProduct + Weight("w", 2, 3)).model.SerializeAsString();
  for (size_t size = 0; size < whole.size(); size += 7) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    const auto file = ReadOnnxFile(path);
    if (file.ok()) CHECK_FALSE(Import(*file).ok());  // cut between two fields
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace lockstep
