#include "tests/conformance/onnx/onnx_case.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/onnx/import.h"
#include "common/graph/passes/forms.h"
#include "common/status/status_macros.h"
#include "common/tensor/half.h"
#include "tests/gradients/graph_runner.h"
#include "worker/device/choice/evaluate_node.h"

namespace lockstep {
namespace {

absl::StatusOr<Tensor> ReadTensorFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  onnx::TensorProto message;
  if (!file || !message.ParseFromIstream(&file)) return absl::UnimplementedError("a value that is no tensor");
  if (message.data_type() == onnx::UNDEFINED) return absl::UnimplementedError("a value that is no tensor");
  absl::StatusOr<Tensor> tensor = ReadOnnxTensor(message, "");
  if (!tensor.ok()) return absl::UnimplementedError(tensor.status().message());
  return tensor;
}

// Older cases write the bits of BF16 as U16.
Tensor Typed(Tensor tensor, const onnx::ValueInfoProto& value) {
  if (value.type().tensor_type().elem_type() != onnx::BFLOAT16 || tensor.dtype() != DType::kU16) return tensor;
  Tensor typed = Tensor::Zeros(DType::kBF16, tensor.shape());
  std::memcpy(typed.data(), tensor.data(), static_cast<size_t>(tensor.byte_size()));
  return typed;
}

template <typename T>
std::string DifferenceOf(const Tensor& got, const Tensor& expected, double absolute, double relative) {
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const auto a = static_cast<double>(got.elements<T>()[i]);
    const auto b = static_cast<double>(expected.elements<T>()[i]);
    if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
    if (!(std::abs(a - b) <= absolute + relative * std::abs(b))) {
      return absl::StrCat("element ", i, " is ", a, " instead of ", b);
    }
  }
  return "";
}

std::string Difference(const Tensor& got, const Tensor& expected, bool tight) {
  // Graphs hold it in float32. What ONNX expects is rounded, so two units in the last place are allowed.
  if (IsHalf(expected.dtype()) && got.dtype() == DType::kF32 && got.shape() == expected.shape()) {
    const bool f16 = expected.dtype() == DType::kF16;
    return DifferenceOf<float>(got, Widened(expected), f16 ? 0x1p-23 : 1e-5, f16 ? 0x1p-9 : 0x1p-6);
  }
  if (got.dtype() != expected.dtype() || got.shape() != expected.shape()) {
    return absl::StrCat(DTypeName(got.dtype()), ShapeString(got.shape()), " instead of ", DTypeName(expected.dtype()),
                        ShapeString(expected.shape()));
  }
  // ONNX's own tolerances: 1e-3 relative, 1e-7 absolute; the expected values of whole models were computed in F32.
  if (tight && got.dtype() == DType::kF32) return DifferenceOf<float>(got, expected, 1e-6, 2e-5);
  if (tight && got.dtype() == DType::kF64) return DifferenceOf<double>(got, expected, 1e-12, 1e-11);
  if (got.dtype() == DType::kF32) return DifferenceOf<float>(got, expected, 1e-5, 1e-3);
  if (got.dtype() == DType::kF64) return DifferenceOf<double>(got, expected, 1e-7, 1e-3);
  return BitEqual(got, expected) ? "" : "other elements";
}

}  // namespace

absl::StatusOr<OnnxCase> ReadOnnxCase(const std::string& folder) {
  OnnxCase made;
  LS_ASSIGN_OR_RETURN(OnnxFile file, ReadOnnxFile(folder + "/model.onnx"));
  // Of these ONNX states four digits, and its older windows are made with 3.1415 for pi.
  const bool rounded = absl::EndsWith(folder, "/test_averagepool_2d_ceil_last_window_starts_on_pad") ||
                       absl::EndsWith(folder, "/test_gridsample_bicubic") || absl::EndsWith(folder, "window") ||
                       absl::EndsWith(folder, "window_symmetric");
  made.single_node = file.model.graph().node_size() == 1 && !rounded;
  int index = 0;
  std::set<std::string> initializers;
  for (const onnx::TensorProto& initializer : file.model.graph().initializer()) initializers.insert(initializer.name());
  for (const onnx::ValueInfoProto& input : file.model.graph().input()) {
    if (initializers.count(input.name()) != 0) continue;
    LS_ASSIGN_OR_RETURN(Tensor tensor, ReadTensorFile(absl::StrCat(folder, "/test_data_set_0/input_", index++, ".pb")));
    made.inputs.emplace(input.name(), Widened(Typed(std::move(tensor), input)));
  }
  for (int i = 0; i < file.model.graph().output_size(); ++i) {
    LS_ASSIGN_OR_RETURN(Tensor tensor, ReadTensorFile(absl::StrCat(folder, "/test_data_set_0/output_", i, ".pb")));
    made.expected.push_back(Typed(std::move(tensor), file.model.graph().output(i)));
  }
  OnnxImportOptions options;
  options.evaluate = device::EvaluateNode;
  options.trainable = false;
  options.known_inputs = &made.inputs;
  LS_ASSIGN_OR_RETURN(ImportedModel model, ImportOnnx(std::move(file), options));
  made.graph = std::move(model.graph);
  UseEvaluationForms(&made.graph);
  LS_RETURN_IF_ERROR(InferShapes(&made.graph));
  return made;
}

std::string ReasonOf(const absl::Status& status) {
  const std::string message(status.message());
  const size_t place = message.rfind("): ");
  if (place != std::string::npos) return message.substr(place + 3);
  const std::string file = "model.onnx";
  const size_t path = message.rfind(file);
  if (path == std::string::npos) return message;
  const std::string behind = message.substr(path + file.size());
  return behind.substr(behind.find_first_not_of(": "));
}

std::string RunOnnxCase(const OnnxCase& test) {
  absl::StatusOr<std::unique_ptr<GraphRunner>> runner = GraphRunner::Make(test.graph);
  if (!runner.ok()) return runner.status().ToString();
  std::set<std::string> read;
  for (const Node& node : test.graph.nodes) read.insert(node.inputs.begin(), node.inputs.end());
  for (const GraphInput& input : test.graph.inputs) {
    if (read.count(input.name) == 0) continue;  // only its type matters; older cases give it another shape
    const Tensor& given = test.inputs.at(input.name);
    Tensor& place = (*runner)->value(input.name);
    if (place.byte_size() != given.byte_size()) return absl::StrCat("input ", input.name, " has another size");
    if (place.byte_size() != 0) std::memcpy(place.data(), given.data(), given.byte_size());
  }
  if (absl::Status status = (*runner)->Run(); !status.ok()) return status.ToString();
  for (size_t i = 0; i < test.graph.outputs.size(); ++i) {
    const std::string difference =
        Difference((*runner)->value(test.graph.outputs[i]), test.expected[i], test.single_node);
    if (!difference.empty()) return absl::StrCat("output ", i, ": ", difference);
  }
  return "";
}

}  // namespace lockstep
