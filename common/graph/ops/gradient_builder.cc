#include "common/graph/ops/gradient_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/status/check.h"

namespace lockstep {

GradientBuilder::GradientBuilder(Graph* graph, const Node& node, std::vector<std::string> output_gradients,
                                 std::vector<bool> needs)
    : graph_(graph),
      node_(node),
      output_gradients_(std::move(output_gradients)),
      needs_(std::move(needs)),
      input_gradients_(node.inputs.size()) {}

const ValueInfo& GradientBuilder::Info(const std::string& value) const {
  static const ValueInfo* const kNone = new ValueInfo;
  const auto found = graph_->values.find(value);
  if (found == graph_->values.end() && !status_.ok()) return *kNone;
  LS_CHECK(found != graph_->values.end(), "values are inferred before the graph is differentiated");
  return found->second;
}

std::string GradientBuilder::Emit(const std::string& suffix, OpType op, std::vector<std::string> inputs,
                                  OpAttributes attributes) {
  return EmitMany(suffix, op, std::move(inputs), {suffix}, std::move(attributes))[0];
}

std::vector<std::string> GradientBuilder::EmitMany(const std::string& name_suffix, OpType op,
                                                   std::vector<std::string> inputs,
                                                   const std::vector<std::string>& output_suffixes,
                                                   OpAttributes attributes) {
  const std::string prefix = absl::StrCat("lockstep.grad.", node_.name, ".");
  Node node{prefix + name_suffix, op, std::move(inputs), {}, std::move(attributes)};
  for (const std::string& suffix : output_suffixes) node.outputs.push_back(prefix + suffix);
  const std::vector<std::string> outputs = node.outputs;
  if (status_.ok()) status_ = AppendNode(graph_, std::move(node));
  return outputs;
}

std::string GradientBuilder::ReduceTo(const std::string& suffix, const std::string& value, const Shape& shape) {
  if (!status_.ok()) return value;
  const Shape from = Info(value).shape;
  if (from == shape) return value;
  LS_CHECK(from.size() >= shape.size(), "a broadcast never lowers the rank");
  const size_t extra = from.size() - shape.size();
  ReduceAttributes reduce;
  for (size_t i = 0; i < from.size(); ++i) {
    if (i < extra || (shape[i - extra] == 1 && from[i] != 1)) reduce.axes.push_back(static_cast<int64_t>(i));
  }
  std::string reduced = value;
  if (!reduce.axes.empty()) reduced = Emit(suffix + ".sum", OpType::kReduceSum, {value}, reduce);
  return ReshapeTo(suffix, reduced, shape);
}

std::string GradientBuilder::ReshapeTo(const std::string& suffix, const std::string& value, const Shape& shape) {
  if (!status_.ok() || Info(value).shape == shape) return value;
  return Emit(suffix, OpType::kReshape, {value}, ReshapeAttributes{shape, true});
}

}  // namespace lockstep
