#include "tests/gradients/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/differentiate.h"
#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "common/graph/passes/forms.h"
#include "common/status/status_macros.h"
#include "tests/gradients/graph_runner.h"

namespace lockstep {
namespace {

constexpr double kStep = 1e-5;
constexpr double kTolerance = 2e-7;

// Adds loss = sum over the outputs of <output, random weights> and returns its name.
absl::StatusOr<std::string> AddLoss(Graph* graph, const std::vector<std::string>& outputs, uint64_t seed) {
  CaseNumbers dice(seed + 1);
  std::string total;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = absl::StrCat("check", i);
    AppendConstant(graph, name, dice.Uniform(graph->values.at(outputs[i]).shape));
    LS_RETURN_IF_ERROR(AppendNode(graph, {name + "w", OpType::kMul, {outputs[i], name}, {name + "w"}, {}}));
    LS_RETURN_IF_ERROR(AppendNode(
        graph, {name + "s", OpType::kReduceSum, {name + "w"}, {name + "s"}, ReduceAttributes{{}, false, false}}));
    const std::string sum = name + "t";
    if (!total.empty()) {
      LS_RETURN_IF_ERROR(AppendNode(graph, {sum, OpType::kAdd, {total, name + "s"}, {sum}, {}}));
    }
    total = total.empty() ? name + "s" : sum;
  }
  return total;
}

// Compares the gradient of one target with differences of the loss.
absl::StatusOr<std::string> CompareTarget(GraphRunner* runner, const std::string& loss, const std::string& target,
                                          const Tensor& gradient) {
  for (int64_t i = 0; i < gradient.num_elements(); ++i) {
    double& x = runner->value(target).elements<double>()[i];
    const double kept = x;
    x = kept + kStep;
    LS_RETURN_IF_ERROR(runner->Run());
    const double above = runner->value(loss).elements<double>()[0];
    x = kept - kStep;
    LS_RETURN_IF_ERROR(runner->Run());
    const double below = runner->value(loss).elements<double>()[0];
    x = kept;
    const double difference = (above - below) / (2 * kStep);
    const double got = gradient.elements<double>()[i];
    if (!(std::abs(got - difference) <= kTolerance * std::max(1.0, std::abs(difference)))) {
      return absl::StrCat("gradient of '", target, "' at element ", i, " of ", ShapeString(gradient.shape()), " is ",
                          got, ", differences give ", difference);
    }
  }
  return std::string();
}

absl::StatusOr<std::string> Check(GradientCase test, uint64_t seed) {
  Graph graph = std::move(test.graph);
  LS_RETURN_IF_ERROR(UseTrainingForms(&graph).status());
  LS_RETURN_IF_ERROR(InferShapes(&graph));
  LS_ASSIGN_OR_RETURN(const std::string loss, AddLoss(&graph, test.outputs, seed));
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> gradients, Differentiate(&graph, loss, test.targets));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<GraphRunner> runner, GraphRunner::Make(graph));
  for (size_t i = 0; i < test.inputs.size(); ++i) {
    Tensor& input = runner->value(graph.inputs[i].name);
    if (input.byte_size() != 0) std::memcpy(input.data(), test.inputs[i].data(), test.inputs[i].byte_size());
  }
  LS_RETURN_IF_ERROR(runner->Run());
  std::vector<Tensor> kept;
  for (size_t i = 0; i < test.targets.size(); ++i) {
    if (gradients[i].empty()) return absl::StrCat("'", test.targets[i], "' has no gradient");
    kept.push_back(runner->value(gradients[i]).Clone());
    if (kept.back().shape() != runner->value(test.targets[i]).shape()) {
      return absl::StrCat("the gradient of '", test.targets[i], "' has shape ", ShapeString(kept.back().shape()));
    }
  }
  for (size_t i = 0; i < test.targets.size(); ++i) {
    LS_ASSIGN_OR_RETURN(std::string difference, CompareTarget(runner.get(), loss, test.targets[i], kept[i]));
    if (!difference.empty()) return difference;
  }
  return std::string();
}

}  // namespace

Tensor CaseNumbers::Uniform(Shape shape) {
  Tensor tensor = Tensor::Zeros(DType::kF64, std::move(shape));
  for (double& value : tensor.elements<double>()) value = Unit();
  return tensor;
}

Tensor CaseNumbers::Distinct(Shape shape) {
  Tensor tensor = Tensor::Zeros(DType::kF64, std::move(shape));
  const int64_t n = tensor.num_elements();
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[Int(0, i)]);
  const double gap = std::max(2.0 / static_cast<double>(n + 1), 4e-3);
  for (int64_t i = 0; i < n; ++i) {
    tensor.elements<double>()[i] = (static_cast<double>(order[i]) - static_cast<double>(n) / 2 + 0.25) * gap;
  }
  return tensor;
}

std::string CheckGradients(GradientCase test, uint64_t seed) {
  const absl::StatusOr<std::string> difference = Check(std::move(test), seed);
  return difference.ok() ? *difference : difference.status().ToString();
}

}  // namespace lockstep
