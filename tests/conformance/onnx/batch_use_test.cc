// Models that compute with the number of samples in their batch are found, and those that only follow it are not.
#include "common/graph/onnx/batch_use.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/import.h"
#include "tests/conformance/onnx/graph_text.h"

namespace lockstep {
namespace {

using graph_text::Gives;
using graph_text::Op;

// x [batch, 6] with nodes, whose last value is y.
Graph ImportAt(int64_t batch, const std::string& nodes) {
  OnnxFile file;
  file.path = "m.onnx";
  file.sha256 = std::string(64, 'a');
  const std::string text = absl::StrCat(
      "ir_version: 8 opset_import { version: 18 } graph { input { name: 'x' type { tensor_type { elem_type: 1 shape { ",
      "dim { dim_param: 'b' } dim { dim_value: 6 } } } } } ", nodes, Gives("y"), " }");
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &file.model));
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  options.batch = batch;
  auto model = ImportOnnx(std::move(file), options);
  INFO(model.status());
  REQUIRE(model.ok());
  return std::move(model->graph);
}

std::string UseIn(const std::string& nodes) {
  std::string use = UseOfBatch(ImportAt(4, nodes), 4, ImportAt(5, nodes), 5);
  return use.empty() ? UseOfBatch(ImportAt(4, nodes), 4, ImportAt(3, nodes), 3) : use;
}

std::string Ints(const std::string& name, const std::string& values, int count) {
  return absl::StrCat("initializer { name: '", name, "' data_type: 7 dims: ", count, " ", values, " } ");
}
std::string One(const std::string& name, int value) { return Ints(name, absl::StrCat("int64_data: ", value), 1); }
std::string Number(const std::string& name, int value) {
  return absl::StrCat("initializer { name: '", name, "' data_type: 7 int64_data: ", value, " } ");
}
std::string IntAttribute(const std::string& name, int value) {
  return absl::StrCat("attribute { name: '", name, "' type: 2 i: ", value, " } ");
}

// b: the batch as [1], n: as a scalar.
const std::string kBatch = One("zero", 0) + Number("first", 0) + Op("Shape", {"x"}, "shape") +
                           Op("Gather", {"shape", "zero"}, "b", IntAttribute("axis", 0)) +
                           Op("Gather", {"shape", "first"}, "n", IntAttribute("axis", 0));
const std::string kFloat = IntAttribute("to", 1);

TEST_CASE("use of the batch: numbers, cuts and choices that are made of it are found", "[onnx]") {
  const std::string of_float = kBatch + Op("Cast", {"b"}, "f", kFloat);
  // x / b, and the number of elements.
  CHECK_FALSE(UseIn(of_float + Op("Div", {"x", "f"}, "y")).empty());
  CHECK_FALSE(UseIn(Op("Size", {"x"}, "s") + Op("Cast", {"s"}, "f", kFloat) + Op("Div", {"x", "f"}, "y")).empty());
  // The last sample first, as roll does.
  const std::string ends = One("end", 100) + One("minus", -1);
  const std::string roll = kBatch + ends + Op("Add", {"b", "minus"}, "last") +
                           Op("Slice", {"x", "last", "end", "zero"}, "tail") +
                           Op("Slice", {"x", "zero", "last", "zero"}, "head");
  CHECK_FALSE(UseIn(roll + Op("Concat", {"tail", "head"}, "y", IntAttribute("axis", 0))).empty());
  // Positions from the end: n - 1, ..., 0.
  const std::string down = kBatch + Number("one", -1) + Op("Add", {"n", "one"}, "start") + Number("stop", -1) +
                           Op("Range", {"start", "stop", "one"}, "r") + Op("Cast", {"r"}, "f", kFloat) +
                           One("axis", 1) + Op("Unsqueeze", {"f", "axis"}, "column");
  CHECK_FALSE(UseIn(down + Op("Mul", {"x", "column"}, "y")).empty());
  // A choice: more than three samples.
  const std::string choice =
      kBatch + Number("three", 3) + Op("Greater", {"n", "three"}, "more") + Op("Neg", {"x"}, "negative");
  CHECK_FALSE(UseIn(choice + Op("Where", {"more", "x", "negative"}, "y")).empty());
}

TEST_CASE("use of the batch: shapes and positions that follow it change no sample", "[onnx]") {
  // Without asking at all.
  CHECK(UseIn(Op("Relu", {"x"}, "y")).empty());
  // [b, 2, 3], and back.
  const std::string shape = Ints("rest", "int64_data: 2 int64_data: 3", 2) + kBatch +
                            Op("Concat", {"b", "rest"}, "to", IntAttribute("axis", 0)) +
                            Op("Reshape", {"x", "to"}, "r");
  CHECK(UseIn(shape + Op("Reshape", {"r", "shape"}, "y")).empty());
  // A row for every sample: a state that begins with zeros, a token in front.
  const std::string row = One("six", 6) + kBatch + Op("Concat", {"b", "six"}, "to", IntAttribute("axis", 0));
  CHECK(UseIn(row + Op("ConstantOfShape", {"to"}, "zeros") + Op("Add", {"x", "zeros"}, "y")).empty());
  const std::string token = "initializer { name: 't' data_type: 1 dims: 1 dims: 6 float_data: [1, 2, 3, 4, 5, 6] } ";
  CHECK(UseIn(token + row + Op("Expand", {"t", "to"}, "all") + Op("Add", {"x", "all"}, "y")).empty());
  // Each sample's place: 0, 1, 2, ...
  const std::string up = kBatch + Number("one", 1) + Op("Range", {"first", "n", "one"}, "r") +
                         Op("Cast", {"r"}, "f", kFloat) + One("axis", 1) + Op("Unsqueeze", {"f", "axis"}, "column");
  CHECK(UseIn(up + Op("Mul", {"x", "column"}, "y")).empty());
}

}  // namespace
}  // namespace lockstep
