#include "common/graph/differentiate.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

class Differentiator {
 public:
  explicit Differentiator(Graph* graph) : graph_(graph) {}

  absl::StatusOr<std::vector<std::string>> Run(const std::string& loss, absl::Span<const std::string> targets) {
    FindDependents(targets);
    LS_RETURN_IF_ERROR(Seed(loss));
    // Nodes appended meanwhile are gradients: they lie behind those of the forward graph.
    for (size_t i = graph_->nodes.size(); i-- > 0;) LS_RETURN_IF_ERROR(Visit(i));
    std::vector<std::string> gradients;
    for (const std::string& target : targets) gradients.push_back(GradientOf(target));
    return gradients;
  }

 private:
  bool Depends(const std::string& value) const { return dependent_.count(value) != 0; }

  std::string GradientOf(const std::string& value) const {
    const auto found = gradients_.find(value);
    return found == gradients_.end() ? "" : found->second;
  }

  // Collects the values through which a gradient reaches a target: what is behind an Identity does not.
  void FindDependents(absl::Span<const std::string> targets) {
    dependent_.insert(targets.begin(), targets.end());
    for (const Node& node : graph_->nodes) {
      if (node.op == OpType::kIdentity) continue;
      if (std::any_of(node.inputs.begin(), node.inputs.end(), [&](const auto& v) { return Depends(v); })) {
        for (const std::string& output : node.outputs) {
          if (!output.empty()) dependent_.insert(output);
        }
      }
    }
  }

  absl::Status Seed(const std::string& loss) {
    const ValueInfo info = graph_->values.at(loss);
    LS_CHECK(info.shape.empty(), "a loss is a scalar");
    LS_RETURN_IF_ERROR(CheckFloating(info, "the loss"));
    Tensor one = info.dtype == DType::kF64 ? Tensor::Of<double>({}, {1.0}) : Tensor::Of<float>({}, {1.0f});
    AppendConstant(graph_, kGradientSeed, std::move(one));
    gradients_[loss] = kGradientSeed;
    return absl::OkStatus();
  }

  absl::Status Visit(size_t index) {
    const Node node = graph_->nodes[index];
    std::vector<std::string> output_gradients;
    for (const std::string& output : node.outputs) output_gradients.push_back(GradientOf(output));
    std::vector<bool> needs;
    for (const std::string& input : node.inputs) needs.push_back(Depends(input));
    const auto given = [](const std::string& gradient) { return !gradient.empty(); };
    if (std::none_of(output_gradients.begin(), output_gradients.end(), given) ||
        std::count(needs.begin(), needs.end(), true) == 0) {
      return absl::OkStatus();
    }
    const OpSchema& schema = SchemaOf(node.op);
    if (schema.gradient == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(NodeLabel(node), ": lies between the parameters and the loss and cannot be differentiated"));
    }
    GradientBuilder builder(graph_, node, std::move(output_gradients), std::move(needs));
    absl::Status status = schema.gradient(builder);
    if (!builder.status().ok()) status = builder.status();
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(NodeLabel(node), ": ", status.message()));
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const std::string& gradient = builder.input_gradients()[i];
      if (builder.Needs(i) && !gradient.empty()) LS_RETURN_IF_ERROR(Accumulate(node.inputs[i], gradient));
    }
    return absl::OkStatus();
  }

  absl::Status Accumulate(const std::string& value, const std::string& gradient) {
    std::string& sum = gradients_[value];
    if (sum.empty()) {
      sum = gradient;
      return absl::OkStatus();
    }
    const std::string name = absl::StrCat("lockstep.gradsum.", value, ".", ++additions_[value]);
    LS_RETURN_IF_ERROR(AppendNode(graph_, {name, OpType::kAdd, {sum, gradient}, {name}, NoAttributes{}}));
    sum = name;
    return absl::OkStatus();
  }

  Graph* graph_;
  std::set<std::string> dependent_;
  std::map<std::string, std::string> gradients_;
  std::map<std::string, int> additions_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> Differentiate(Graph* graph, const std::string& loss,
                                                       absl::Span<const std::string> targets) {
  return Differentiator(graph).Run(loss, targets);
}

}  // namespace lockstep
