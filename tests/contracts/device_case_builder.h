// Helpers for the files of device cases, one file per group of op families.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_CONTRACTS_DEVICE_CASE_BUILDER_H_
#define LOCKSTEP_TESTS_CONTRACTS_DEVICE_CASE_BUILDER_H_

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/ops/schema.h"
#include "common/status/check.h"
#include "tests/contracts/device_cases.h"

namespace lockstep {

// Appends inputs and nodes; every output of a node becomes an output of the graph.
class CaseBuilder {
 public:
  explicit CaseBuilder(DeviceCase* result) : graph_(result->graph) {}

  std::string In(Shape shape, DType dtype = DType::kF32, std::string name = "") {
    if (name.empty()) name = "x" + std::to_string(graph_.inputs.size());
    graph_.inputs.push_back({name, dtype, shape});
    graph_.values[name] = {dtype, std::move(shape)};
    return name;
  }

  // A constant of the graph: one number.
  std::string Number(float value) {
    const std::string name = "c" + std::to_string(graph_.constants.size());
    graph_.constants.push_back({name, std::make_shared<Tensor>(Tensor::Of<float>({}, {value}))});
    graph_.values[name] = {DType::kF32, {}};
    return name;
  }

  std::vector<std::string> Op(OpType op, std::vector<std::string> inputs, OpAttributes attributes, int outputs = 1) {
    Node node{.name = "n" + std::to_string(graph_.nodes.size()), .op = op, .inputs = std::move(inputs)};
    node.attributes = std::move(attributes);
    for (int i = 0; i < outputs; ++i) node.outputs.push_back(node.name + "." + std::to_string(i));
    const std::vector<std::string> names = node.outputs;
    const absl::Status status = AppendNode(&graph_, std::move(node));
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
    LS_CHECK(status.ok(), "a random case is a legal graph");
    for (const std::string& name : names) graph_.outputs.push_back(name);
    return names;
  }

  const Shape& ShapeOf(const std::string& name) const { return graph_.values.at(name).shape; }

 private:
  Graph& graph_;
};

// Dimensions in [1, max_extent].
inline Shape RandomShape(Dice& dice, int64_t min_rank, int64_t max_rank, int64_t max_extent = 7) {
  Shape shape(static_cast<size_t>(dice.Roll(min_rank, max_rank)));
  for (int64_t& extent : shape) extent = dice.Roll(1, max_extent);
  return shape;
}

// A shape that broadcasts to `shape`.
inline Shape Broadcastable(Dice& dice, Shape shape) {
  for (int64_t& extent : shape) extent = dice.Roll(0, 3) == 0 ? 1 : extent;
  shape.erase(shape.begin(), shape.begin() + dice.Roll(0, static_cast<int64_t>(shape.size())));
  return shape;
}

// Each writes a case of an op of its file and returns true, or false for an op that it does not know.
bool MakeActivationCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c);
bool MakeAttentionCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c);
bool MakeElementwiseCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c);
bool MakeMovementCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c);
bool MakeIndexingCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c);
bool MakeNormalisationCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c);
bool MakeReductionCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c);
bool MakeSpatialCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONTRACTS_DEVICE_CASE_BUILDER_H_
