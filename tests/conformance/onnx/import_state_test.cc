// What of a model's state dict the importer takes into the state, and under which kind.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/import.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep {
namespace {

using Catch::Contains;

// Two products and a batch normalisation between them: x [batch, 2] -> y [batch, 3].
OnnxFile TwoLayers(const std::string& signature) {
  OnnxFile file;
  file.path = "m.onnx";
  file.sha256 = std::string(64, 'a');
  std::string text = R"(
    ir_version: 8 producer_name: 'pytorch' opset_import { version: 17 }
    graph {
      input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_param: 'b' } dim { dim_value: 2 } } } } }
      output { name: 'y' }
      node { op_type: 'MatMul' input: 'x' input: 'enc.weight' output: 'h' }
      node { op_type: 'BatchNormalization' input: 'h' input: 'bn.weight' input: 'bn.bias' input: 'bn.running_mean'
             input: 'bn.running_var' output: 'n' }
      node { op_type: 'MatMul' input: 'n' input: 'head.weight' output: 'y' })";
  const std::map<std::string, std::string> dims = {
      {"enc.weight", "dims: 2 dims: 3"}, {"head.weight", "dims: 3 dims: 3"},
      {"bn.weight", "dims: 3"},          {"bn.bias", "dims: 3"},
      {"bn.running_mean", "dims: 3"},    {"bn.running_var", "dims: 3"}};
  for (const auto& [name, shape] : dims) {
    absl::StrAppend(&text, " initializer { name: '", name, "' data_type: 1 ", shape);
    for (int i = 0; i < (shape.size() > 8 ? (name[0] == 'e' ? 6 : 9) : 3); ++i)
      absl::StrAppend(&text, " float_data: 1");
    absl::StrAppend(&text, " }");
  }
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text + "}", &file.model));
  if (!signature.empty()) {
    auto* property = file.model.mutable_graph()->add_metadata_props();
    property->set_key("pkg.torch.export.ExportedProgram.graph_signature");
    property->set_value(signature + "\n# outputs\ngetitem_3: BUFFER_MUTATION target='bn.running_mean'\n");
  }
  return file;
}

ImportedModel Import(OnnxFile file, OnnxImportOptions options) {
  options.evaluate = device::EvaluateNode;
  options.batch = 4;
  auto model = ImportOnnx(std::move(file), options);
  INFO(model.status().ToString());
  REQUIRE(model.ok());
  return *std::move(model);
}

std::string Refusal(OnnxImportOptions options) {
  options.evaluate = device::EvaluateNode;
  options.batch = 4;
  const auto model = ImportOnnx(TwoLayers(""), options);
  REQUIRE_FALSE(model.ok());
  return std::string(model.status().message());
}

std::map<std::string, VariableKind> Kinds(const ImportedModel& model) {
  std::map<std::string, VariableKind> kinds;
  for (const Variable& variable : model.graph.variables) kinds[variable.name] = variable.kind;
  return kinds;
}

TEST_CASE("import: a frozen batch normalisation keeps its statistics and counts nothing", "[onnx]") {
  OnnxImportOptions options;
  const ImportedModel trained = Import(TwoLayers(""), options);
  options.batch_norm = {"freeze"};

  const ImportedModel frozen = Import(TwoLayers(""), options);

  CHECK(trained.aliases == std::vector<StateAlias>{{"bn.num_batches_tracked", kStepCounterName}});
  CHECK(frozen.aliases.empty());
  CHECK(Kinds(frozen).at("bn.num_batches_tracked") == VariableKind::kFrozen);
  CHECK(Kinds(frozen).at("bn.running_var") == VariableKind::kFrozen);
  CHECK(Kinds(frozen).at("bn.weight") == VariableKind::kParameter);
}

// Notes at a node which layer of the model it comes from, and which call of the exported program.
void SetNotes(OnnxFile* file, int node, const std::string& layers, const std::string& call) {
  for (const auto& [key, value] : {std::pair("name_scopes", layers), std::pair("fx_node", call)}) {
    auto* property = file->model.mutable_graph()->mutable_node(node)->add_metadata_props();
    property->set_key(absl::StrCat("pkg.torch.onnx.", key));
    property->set_value(value);
  }
}

TEST_CASE("import: layers tell tied parameters from unused ones, and constants are not trained", "[onnx]") {
  OnnxFile file = TwoLayers(
      "\nw: PARAMETER target='bn.weight'\nb: PARAMETER target='bn.bias'\nc: CONSTANT_TENSOR target='enc.weight'\n"
      "p_h: PARAMETER target='head.weight'\np_e: PARAMETER target='a.emb.weight'\n"
      "p_s: PARAMETER target='spare.weight'\n"
      "b_m: BUFFER target='bn.running_mean' persistent=True\nb_v: BUFFER target='bn.running_var' persistent=True\n"
      "b_r: BUFFER target='rest' persistent=True\n");
  SetNotes(&file, 0, "['', 'matmul']", "%h : call_function[target=...](args = (%x, %c), kwargs = {})");
  SetNotes(&file, 2, "['', 'a', 'a.emb', 'matmul_1']", "%y : call_function[target=...](args = (%n, %p_h))");

  const ImportedModel model = Import(std::move(file), {});

  CHECK(std::count(model.aliases.begin(), model.aliases.end(), StateAlias{"a.emb.weight", "head.weight"}) == 1);
  CHECK(Kinds(model).at("head.weight") == VariableKind::kParameter);
  CHECK(Kinds(model).count("enc.weight") == 0);
  REQUIRE(model.warnings.size() == 2);
  CHECK_THAT(model.warnings[0], Contains("the parameters spare.weight:") && Contains("strict=False"));
  CHECK_THAT(model.warnings[1], Contains("the buffers rest:") && Contains("strict=False"));
}

TEST_CASE("import: a file as of model.eval() trains its batch normalisations with a warning, or as the job says",
          "[onnx]") {
  const ImportedModel untold = Import(TwoLayers(""), {});
  OnnxImportOptions options;
  options.batch_norm = {"train"};

  const ImportedModel told = Import(TwoLayers(""), options);

  CHECK(Kinds(untold) == Kinds(told));
  REQUIRE(untold.warnings.size() == 1);
  CHECK_THAT(untold.warnings[0], Contains("model.batch_norm: train"));
  CHECK(told.warnings.empty());
}

TEST_CASE("import: both names of a tied parameter exist, and one that is missing is named", "[onnx]") {
  const std::string signature =
      "\nw: PARAMETER target='bn.weight'\nb: PARAMETER target='bn.bias'\np_a: PARAMETER target='enc.weight'\np_b: "
      "PARAMETER target='head.weight'\np_c: PARAMETER target='emb.weight'\n";
  OnnxImportOptions options;
  const ImportedModel untold = Import(TwoLayers(signature), options);
  options.tied = {{"emb.weight", "head.weight"}};

  const ImportedModel told = Import(TwoLayers(signature), options);

  CHECK(told.aliases == std::vector<StateAlias>{{"emb.weight", "head.weight"}});
  CHECK(told.warnings.empty());
  REQUIRE(untold.warnings.size() == 1);
  CHECK_THAT(untold.warnings[0], Contains("emb.weight") && Contains("model.tied"));
  options.tied = {{"emb.weight", "nowhere"}};
  CHECK_THAT(Refusal(options), Contains("nowhere"));
  options.tied = {{"enc.weight", "head.weight"}};
  CHECK_THAT(Refusal(options), Contains("of its own"));
}

TEST_CASE("import: weights that an exporter folded are trained under their new names, with a warning", "[onnx]") {
  const std::string signature = "\np_a: PARAMETER target='encoder.w'\np_b: PARAMETER target='head.weight'\n";

  const ImportedModel model = Import(TwoLayers(signature), {});

  CHECK(Kinds(model).at("enc.weight") == VariableKind::kParameter);
  CHECK(Kinds(model).at("head.weight") == VariableKind::kParameter);
  REQUIRE(model.warnings.size() == 1);
  CHECK_THAT(model.warnings[0], Contains("encoder.w") && Contains("enc.weight") && Contains("optimize=False"));
}

TEST_CASE("import: a batch normalisation that an exporter merged is named, and not taken for a tied weight", "[onnx]") {
  const std::string signature =
      "\nw: PARAMETER target='bn.weight'\nb: PARAMETER target='bn.bias'\np_a: PARAMETER target='enc.weight'\np_b: "
      "PARAMETER target='head.weight'\np_c: PARAMETER target='norm.weight'\np_d: PARAMETER target='norm.bias'\n"
      "b_m: BUFFER target='norm.running_mean' persistent=True\n";

  const ImportedModel model = Import(TwoLayers(signature), {});

  REQUIRE(model.warnings.size() == 1);
  CHECK_THAT(model.warnings[0],
             Contains("merged the batch normalisations norm into") && Contains("optimize=False") && !Contains("tied"));
}

TEST_CASE("import: weights that an exporter made of batch normalisations are named as its own", "[onnx]") {
  const ImportedModel model =
      Import(TwoLayers("\nw: PARAMETER target='bn.weight'\nb: PARAMETER target='bn.bias'\np_b: PARAMETER "
                       "target='head.weight'\np_c: PARAMETER target='norm.weight'\n"
                       "b_m: BUFFER target='norm.running_mean' persistent=True\n"),
             {});

  REQUIRE(model.warnings.size() == 2);
  CHECK_THAT(model.warnings[0], Contains("merged the batch normalisations norm into"));
  CHECK_THAT(model.warnings[1], Contains("made weights of its own (enc.weight), which are trained"));
}

TEST_CASE("import: parameters that begin anew keep the file's scale, not its values", "[onnx]") {
  OnnxFile file = TwoLayers("");
  for (onnx::TensorProto& tensor : *file.model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() != "head.weight") continue;
    for (int i = 0; i < 9; ++i) tensor.set_float_data(i, i % 2 == 0 ? 2.0f : -2.0f);
  }
  OnnxImportOptions options;
  options.redraw = true;

  const ImportedModel model = Import(std::move(file), options);

  std::map<std::string, InitRule> rules;
  for (const Variable& variable : model.graph.variables) rules[variable.name] = variable.init;
  CHECK(rules.at("head.weight").kind == InitRule::Kind::kNormal);
  CHECK(rules.at("head.weight").value == Approx(2.0).epsilon(0.01));
  CHECK(rules.at("bn.weight") == InitRule{InitRule::Kind::kConstant, 1.0, 0, "", ""});
  CHECK(rules.at("bn.running_mean") == InitRule{InitRule::Kind::kConstant, 0.0, 0, "", ""});
}

}  // namespace
}  // namespace lockstep
