// Tensors that whatever wrote a file merged, folded or left out: each is trained as in the model, or the file is
// refused.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/onnx/import.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep {
namespace {

using Catch::Contains;

// A model of x [4, 6] -> y.
class File {
 public:
  explicit File(const std::string& producer = "pytorch") {
    text_ = absl::StrCat("ir_version: 8 producer_name: '", producer, "' opset_import { version: 18 } graph { ",
                         "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } dim { "
                         "dim_value: 6 } } } } } output { name: 'y' } ");
  }

  // `call`: of the program, as the newer exporter notes it; `layer`: the one that made it.
  File& Node(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
             const std::string& call = "", const std::string& layer = "") {
    absl::StrAppend(&text_, "node { op_type: '", op, "' input: ['", absl::StrJoin(inputs, "', '"), "'] output: '",
                    output, "' ");
    if (!call.empty()) {
      absl::StrAppend(&text_, "metadata_props { key: 'pkg.torch.onnx.fx_node' value: '%", output,
                      " : [num_users=1] = call_function[target=torch.ops.aten.", call, ", kwargs = {})' } ",
                      "metadata_props { key: 'pkg.torch.onnx.name_scopes' value: \"['', ",
                      layer.empty() ? "" : absl::StrCat("'", layer, "', "), "'", output, "']\" } ");
    }
    if (op == "Gemm") absl::StrAppend(&text_, "attribute { name: 'transB' type: 2 i: 1 } ");
    text_ += "} ";
    return *this;
  }

  File& Tensor(const std::string& name, const std::vector<int64_t>& dims, float value = 1) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    absl::StrAppend(&text_, "initializer { name: '", name, "' data_type: 1 dims: [", absl::StrJoin(dims, ", "), "] ");
    for (int64_t i = 0; i < count; ++i) absl::StrAppend(&text_, "float_data: ", value, " ");
    text_ += "} ";
    return *this;
  }

  File& Axis(const std::string& name, int64_t axis) {
    absl::StrAppend(&text_, "initializer { name: '", name, "' data_type: 7 dims: 1 int64_data: ", axis, " } ");
    return *this;
  }

  // Lines of the signature: "weight: PARAMETER" for a tensor, or "buffer: BUFFER".
  File& Sign(const std::vector<std::pair<std::string, std::string>>& tensors, const std::string& more = "") {
    std::string lines = "\\n";
    for (const auto& [name, kind] : tensors) {
      std::string placeholder = absl::StrCat(kind == "PARAMETER" ? "p_" : "b_", name);
      std::replace(placeholder.begin(), placeholder.end(), '.', '_');
      absl::StrAppend(&lines, placeholder, ": ", kind, " target=\\'", name, "\\' persistent=True\\n");
    }
    absl::StrAppend(&text_, "metadata_props { key: 'pkg.torch.export.ExportedProgram.graph_signature' value: '", lines,
                    more, "' } ");
    return *this;
  }

  absl::StatusOr<ImportedModel> Import(OnnxImportOptions options = {}) const {
    OnnxFile file;
    file.path = "m.onnx";
    file.sha256 = std::string(64, 'a');
    REQUIRE(google::protobuf::TextFormat::ParseFromString(text_ + "}", &file.model));
    options.evaluate = device::EvaluateNode;
    options.batch = 4;
    return ImportOnnx(std::move(file), options);
  }

  ImportedModel Model(OnnxImportOptions options = {}) const {
    auto model = Import(std::move(options));
    INFO(model.status().ToString());
    REQUIRE(model.ok());
    return *std::move(model);
  }

  std::string Refusal() const {
    const auto model = Import();
    REQUIRE_FALSE(model.ok());
    return std::string(model.status().message());
  }

 private:
  std::string text_;
};

constexpr char kParameter[] = "PARAMETER", kBuffer[] = "BUFFER";

std::map<std::string, VariableKind> Kinds(const ImportedModel& model) {
  std::map<std::string, VariableKind> kinds;
  for (const Variable& variable : model.graph.variables) kinds[variable.name] = variable.kind;
  return kinds;
}

// Two normalisations, n and m, that the file gives the tensors of n. `read`: what the call of m takes.
File MergedNorms(const std::string& read) {
  return File()
      .Node("LayerNormalization", {"x", "n.weight", "n.bias"}, "h",
            "layer_norm.default](args = (%x, [6], %p_n_weight, %p_n_bias, 1e-05)", "n")
      .Node("LayerNormalization", {"h", "n.weight", "n.bias"}, "y",
            absl::StrCat("layer_norm.default](args = (%", read, ", [6], %p_m_weight, %p_m_bias, 1e-05)"), "m")
      .Tensor("n.weight", {6})
      .Tensor("n.bias", {6}, 0)
      .Sign({{"n.weight", kParameter}, {"n.bias", kParameter}, {"m.weight", kParameter}, {"m.bias", kParameter}});
}

TEST_CASE("import: a statistic that is a parameter under another name is its own again, or refused", "[onnx]") {
  const auto file = [](const std::string& producer) {
    return File(producer)
        .Node("Identity", {"bn.bias"}, "bn.running_mean")
        .Node("Identity", {"bn.weight"}, "bn.running_var")
        .Node("BatchNormalization", {"x", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}, "y")
        .Tensor("bn.weight", {6})
        .Tensor("bn.bias", {6}, 0);
  };

  const ImportedModel model = file("pytorch").Model();

  CHECK(Kinds(model).at("bn.bias") == VariableKind::kParameter);
  CHECK(Kinds(model).at("bn.running_mean") == VariableKind::kStatistic);
  CHECK(Kinds(model).at("bn.running_var") == VariableKind::kStatistic);
  CHECK(model.initial.at("bn.running_var").elements<float>()[5] == 1);
  REQUIRE(model.warnings.size() == 1);
  CHECK_THAT(model.warnings[0], Contains("as of model.eval()"));
  CHECK_THAT(file("other").Refusal(),
             Contains("'bn.running_mean' is no initialiser of its own") && Contains("optimize=False"));
}

TEST_CASE("import: a statistic that is one tensor with a weight is refused", "[onnx]") {
  CHECK_THAT(File("other")
                 .Node("BatchNormalization", {"x", "bn.weight", "bn.bias", "bn.bias", "bn.weight"}, "y")
                 .Tensor("bn.weight", {6})
                 .Tensor("bn.bias", {6}, 0)
                 .Refusal(),
             Contains("its statistic 'bn.bias' is also a weight or bias") && Contains("optimize=False"));
  CHECK_THAT(File("other")
                 .Node("BatchNormalization", {"x", "bn.weight", "bn.bias", "mean", "var"}, "h")
                 .Node("LayerNormalization", {"h", "var", "mean"}, "y")
                 .Tensor("bn.weight", {6})
                 .Tensor("bn.bias", {6}, 0)
                 .Tensor("var", {6})
                 .Tensor("mean", {6}, 0)
                 .Refusal(),
             Contains("its statistic 'mean' is also a weight or bias"));
}

TEST_CASE("import: a batch normalisation that is called again with moved statistics is refused", "[onnx]") {
  CHECK_THAT(File()
                 .Node("BatchNormalization", {"x", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}, "h")
                 .Node("Identity", {"bn.running_mean"}, "getitem_3")
                 .Node("Identity", {"bn.running_var"}, "getitem_4")
                 .Node("BatchNormalization", {"h", "bn.weight", "bn.bias", "getitem_3", "getitem_4"}, "y")
                 .Tensor("bn.weight", {6})
                 .Tensor("bn.bias", {6}, 0)
                 .Tensor("bn.running_mean", {6}, 0)
                 .Tensor("bn.running_var", {6})
                 .Sign({{"bn.weight", kParameter},
                        {"bn.bias", kParameter},
                        {"bn.running_mean", kBuffer},
                        {"bn.running_var", kBuffer}},
                       "getitem_8: BUFFER_MUTATION target=\\'bn.running_mean\\'\\n")
                 .Refusal(),
             Contains("of another call") && Contains("a layer of its own"));
}

TEST_CASE("import: parameters that an exporter merged train apart by what the calls take", "[onnx]") {
  // The first layer's tensors stand for all; the last normalisation has none, and its ones are constants.
  const ImportedModel model =
      File()
          .Node("LayerNormalization", {"x", "n.weight", "n.bias"}, "h",
                "layer_norm.default](args = (%x, [6], %p_n_weight, %p_n_bias, 1e-05)", "n")
          .Node("LayerNormalization", {"h", "n.weight", "n.bias"}, "i",
                "layer_norm.default](args = (%h, [6], %p_m_weight, %p_m_bias, 1e-05)", "m")
          .Node("Add", {"i", "n.bias"}, "k", "add.Tensor](args = (%i, %p_shift)")
          .Node("LayerNormalization", {"k", "n.weight"}, "y", "layer_norm.default](args = (%k, [6], None, None, 1e-05)")
          .Tensor("n.weight", {6})
          .Tensor("n.bias", {6}, 0)
          .Sign({{"n.weight", kParameter},
                 {"n.bias", kParameter},
                 {"m.weight", kParameter},
                 {"m.bias", kParameter},
                 {"shift", kParameter}})
          .Model();

  const std::vector<std::string> names = {"n.weight", "n.bias", "m.weight", "m.bias", "shift"};
  for (const std::string& name : names) CHECK(Kinds(model).at(name) == VariableKind::kParameter);
  CHECK(model.graph.variables.size() == names.size());
  CHECK(model.graph.nodes[1].inputs == std::vector<std::string>{"h", "m.weight", "m.bias"});
  CHECK(model.graph.nodes[2].inputs == std::vector<std::string>{"i", "shift"});
  CHECK(model.graph.constants.size() == 1);
  CHECK(model.warnings.empty());
}

TEST_CASE("import: what a job calls tied stays one, whatever the calls take", "[onnx]") {
  OnnxImportOptions options;
  options.tied = {{"m.weight", "n.weight"}, {"m.bias", "n.bias"}};
  const ImportedModel model = MergedNorms("h").Model(options);

  CHECK(model.graph.nodes[1].inputs == std::vector<std::string>{"h", "n.weight", "n.bias"});
  CHECK(model.aliases == std::vector<StateAlias>{{"m.bias", "n.bias"}, {"m.weight", "n.weight"}});
  CHECK(model.warnings.empty());
}

TEST_CASE("import: merged parameters that the calls do not tell apart are named", "[onnx]") {
  const ImportedModel model = MergedNorms("gone").Model();

  REQUIRE(model.warnings.size() == 1);
  CHECK_THAT(model.warnings[0], Contains("no tensors of their own for m.bias, m.weight") && Contains("optimize=False"));
}

TEST_CASE("import: a bias of zeros that an exporter left out is trained", "[onnx]") {
  const ImportedModel model =
      File()
          .Node("Gemm", {"x", "a.weight"}, "y", "linear.default](args = (%x, %p_a_weight, %p_a_bias)", "a")
          .Tensor("a.weight", {3, 6})
          .Sign({{"a.weight", kParameter}, {"a.bias", kParameter}})
          .Model();

  CHECK(Kinds(model).at("a.bias") == VariableKind::kParameter);
  CHECK(model.initial.at("a.bias").shape() == Shape{3});
  CHECK(model.graph.nodes[0].inputs.size() == 3);
  CHECK(model.warnings.empty());
}

TEST_CASE("import: a weight that an exporter computed from parameters is trained, or the file refused", "[onnx]") {
  // F.linear(x, w * 2): the product is a constant of the file, and no call takes w.
  const ImportedModel model = File()
                                  .Node("Gemm", {"x", "mul", "b"}, "y", "linear.default](args = (%x, %mul, %p_b)")
                                  .Tensor("mul", {3, 6})
                                  .Tensor("b", {3})
                                  .Sign({{"w", kParameter}, {"b", kParameter}})
                                  .Model();
  const File product = File()
                           .Node("Mul", {"x", "mul"}, "h", "mul.Tensor](args = (%x, %mul)")
                           .Node("Gemm", {"h", "a"}, "y", "linear.default](args = (%h, %p_a)")
                           .Tensor("mul", {6})
                           .Tensor("a", {3, 6})
                           .Sign({{"w", kParameter}, {"a", kParameter}});

  CHECK(Kinds(model).at("mul") == VariableKind::kParameter);
  REQUIRE(model.warnings.size() == 1);
  CHECK_THAT(model.warnings[0], Contains("folded 1 parameters (w) into weights of other names (mul)"));
  CHECK_THAT(product.Refusal(), Contains("computed 'mul'") && Contains("(w)") && Contains("optimize=False"));
}

TEST_CASE("import: folded weights that begin alike train apart, those of one parameter as one", "[onnx]") {
  const ImportedModel model = File()
                                  .Node("MatMul", {"x", "val_0"}, "h", "linear.default](args = (%x, %p_a)", "a")
                                  .Node("MatMul", {"h", "val_0"}, "i", "linear.default](args = (%h, %p_b)", "b")
                                  .Node("MatMul", {"i", "val_0"}, "y", "linear.default](args = (%i, %p_a)", "c")
                                  .Tensor("val_0", {6, 6})
                                  .Sign({{"a", kParameter}, {"b", kParameter}})
                                  .Model();

  REQUIRE(model.graph.variables.size() == 2);
  CHECK(model.graph.nodes[0].inputs[1] == "val_0");
  CHECK(model.graph.nodes[1].inputs[1] == "val_0.own");
  CHECK(model.graph.nodes[2].inputs[1] == "val_0");
}

TEST_CASE("import: a folded group normalisation trains its scales and shifts, not its constants", "[onnx]") {
  const std::string call = "group_norm.default](args = (%x, 2, %p_g_weight, %p_g_bias, 1e-05, False)";
  const ImportedModel model = File()
                                  .Node("Unsqueeze", {"x", "axis"}, "r", call, "g")
                                  .Node("InstanceNormalization", {"r", "val_1", "val_2"}, "i", call, "g")
                                  .Node("Mul", {"i", "val_3"}, "m", call, "g")
                                  .Node("Add", {"m", "val_4"}, "y", call, "g")
                                  .Axis("axis", 2)
                                  .Tensor("val_1", {6})
                                  .Tensor("val_2", {6}, 0)
                                  .Tensor("val_3", {6, 1})
                                  .Tensor("val_4", {6, 1}, 0)
                                  .Sign({{"g.weight", kParameter}, {"g.bias", kParameter}})
                                  .Model();

  CHECK(Kinds(model) ==
        std::map<std::string, VariableKind>{{"val_3", VariableKind::kParameter}, {"val_4", VariableKind::kParameter}});
}

TEST_CASE("import: norms in eval() stay beside a buffer that changes, also one that is kept", "[onnx]") {
  const File file =
      File()
          .Node("Gemm", {"x", "a.weight"}, "h")
          .Node("BatchNormalization", {"h", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}, "y")
          .Node("Add", {"y", "average"}, "add")
          .Tensor("a.weight", {6, 6})
          .Tensor("bn.weight", {6})
          .Tensor("bn.bias", {6}, 0)
          .Tensor("bn.running_mean", {6}, 0)
          .Tensor("bn.running_var", {6})
          .Tensor("average", {6}, 0)
          .Sign({{"a.weight", kParameter},
                 {"bn.weight", kParameter},
                 {"bn.bias", kParameter},
                 {"bn.running_mean", kBuffer},
                 {"bn.running_var", kBuffer},
                 {"average", kBuffer}},
                "add: BUFFER_MUTATION target=\\'average\\'\\n");
  OnnxImportOptions options;
  options.constant_buffers = {"average"};

  const ImportedModel model = file.Model(options);

  CHECK(Kinds(model).at("bn.running_mean") == VariableKind::kFrozen);
  CHECK(model.warnings.empty());
}

}  // namespace
}  // namespace lockstep
