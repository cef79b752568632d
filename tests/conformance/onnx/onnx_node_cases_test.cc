// The op set's semantics are ONNX's: its own backend cases run on the reference device.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "common/graph/graph_editor.h"
#include "common/graph/passes/forms.h"
#include "tests/conformance/onnx/node_case.h"
#include "tests/gradients/graph_runner.h"

namespace lockstep {
namespace {

constexpr char kCases[] = "/usr/share/libonnx-testdata/data/node";

// In training, ONNX's BatchNormalization gives the new running statistics: here a rule of the update moves them.
void UseTrainedBatchNorm(NodeCase* test) {
  Node& node = test->graph.nodes[0];
  std::get<BatchNormAttributes>(node.attributes).training_mode = true;
  for (size_t i = 3; i < 5; ++i) {
    const GraphInput& input = test->graph.inputs[i];
    test->graph.variables.push_back({input.name, input.dtype, input.shape, VariableKind::kStatistic, {}});
  }
  test->graph.inputs.resize(3);
  node.outputs.resize(1);
  const TrainingForms forms = *UseTrainingForms(&test->graph);
  test->graph.outputs = {"o0", forms.statistics[0].value, forms.statistics[1].value};
  for (size_t i = 0; i < 2; ++i) {
    // Expected: running = momentum * old + (1 - momentum) * batch. What the graph gives is `batch`.
    const absl::Span<const float> old = test->inputs[3 + i].elements<float>();
    const absl::Span<float> expected = test->expected[1 + i].elements<float>();
    const auto momentum = static_cast<float>(forms.statistics[i].momentum);
    for (size_t c = 0; c < old.size(); ++c) expected[c] = (expected[c] - momentum * old[c]) / (1 - momentum);
  }
  test->inputs.resize(3);
}

// Empty when every element lies within the tolerance: absolute, and relative to what is expected.
template <typename T>
std::string DifferenceOf(const Tensor& got, const Tensor& expected, T absolute, T relative) {
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    const T a = got.elements<T>()[i];
    const T b = expected.elements<T>()[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= absolute + relative * std::abs(b))) {
      return "element " + std::to_string(i) + " is " + std::to_string(a) + " instead of " + std::to_string(b);
    }
  }
  return "";
}

std::string Difference(const Tensor& got, const Tensor& expected) {
  if (got.dtype() != expected.dtype() || got.shape() != expected.shape()) {
    return ShapeString(got.shape()) + " instead of " + ShapeString(expected.shape());
  }
  if (got.dtype() == DType::kF32) return DifferenceOf<float>(got, expected, 1e-6f, 2e-5f);
  if (got.dtype() == DType::kF64) return DifferenceOf<double>(got, expected, 1e-12, 1e-11);
  return BitEqual(got, expected) ? "" : "other elements";
}

std::string RunCase(NodeCase test) {
  if (test.graph.nodes[0].op == OpType::kBatchNormalization && test.expected.size() == 3) UseTrainedBatchNorm(&test);
  UseEvaluationForms(&test.graph);
  if (absl::Status status = InferShapes(&test.graph); !status.ok()) return status.ToString();
  absl::StatusOr<std::unique_ptr<GraphRunner>> runner = GraphRunner::Make(test.graph);
  if (!runner.ok()) return runner.status().ToString();
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    Tensor& input = (*runner)->value(test.graph.inputs[i].name);
    if (input.byte_size() != 0) std::memcpy(input.data(), test.inputs[i].data(), test.inputs[i].byte_size());
  }
  if (absl::Status status = (*runner)->Run(); !status.ok()) return status.ToString();
  for (size_t i = 0; i < test.graph.outputs.size(); ++i) {
    const std::string difference = Difference((*runner)->value(test.graph.outputs[i]), test.expected[i]);
    if (!difference.empty()) return "output " + std::to_string(i) + ": " + difference;
  }
  return "";
}

// Ops without a case in ONNX 1.12, whose data is installed: most are of a newer opset. Those that
// onnx_definitions_test.cc computes from their definition.
const std::set<OpType>& OpsWithoutCases() {
  static const std::set<OpType>& ops = *new std::set<OpType>{OpType::kGelu, OpType::kMish, OpType::kRmsNormalization,
                                                             OpType::kGroupNormalization, OpType::kLpNormalization};
  return ops;
}

TEST_CASE("onnx: the op set gives what ONNX's own cases ask for", "[conformance]") {
  std::map<OpType, int> passed;
  std::set<std::string> outside;
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(kCases)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const std::filesystem::path& folder : folders) {
    absl::StatusOr<NodeCase> test = ReadNodeCase(folder.string());
    INFO(folder.filename().string());
    if (test.status().code() == absl::StatusCode::kUnimplemented) {
      outside.insert(std::string(test.status().message()));
      continue;
    }
    INFO(test.status().ToString());
    REQUIRE(test.ok());
    const OpType op = test->graph.nodes[0].op;
    const std::string difference = RunCase(*std::move(test));
    CHECK(difference == "");
    if (difference.empty()) ++passed[op];
  }

  int total = 0;
  for (const auto& [op, count] : passed) total += count;
  std::cout << "ONNX cases passed: " << total << " of " << passed.size() << " ops\n";
  for (const OpType op : AllOps()) {
    INFO(std::string(OpName(op)));
    if (OpDomain(op).empty()) CHECK((passed[op] > 0) == (OpsWithoutCases().count(op) == 0));
  }
  CHECK(total >= 100);
}

}  // namespace
}  // namespace lockstep
