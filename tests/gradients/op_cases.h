// Random cases of single ops for the property test of gradients: one file of cases per group of op families.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_GRADIENTS_OP_CASES_H_
#define LOCKSTEP_TESTS_GRADIENTS_OP_CASES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/graph/ops/ir.h"
#include "tests/gradients/gradient_check.h"

namespace lockstep {

// Collects inputs and writes the only node of most cases.
struct CaseWriter {
  GradientCase made;

  std::string Input(Tensor value, bool target = true) {
    const std::string name(1, static_cast<char>('a' + made.inputs.size()));
    made.graph.inputs.push_back({name, value.dtype(), value.shape()});
    made.inputs.push_back(std::move(value));
    if (target) made.targets.push_back(name);
    return name;
  }

  GradientCase Op(OpType op, std::vector<std::string> inputs, OpAttributes attributes = {}) {
    made.graph.nodes.push_back({"op", op, std::move(inputs), {"y"}, std::move(attributes)});
    made.outputs = {"y"};
    return std::move(made);
  }
};

// Dimensions in [1, 4].
inline Shape RandomShape(CaseNumbers& dice, int64_t low_rank, int64_t high_rank) {
  Shape shape(static_cast<size_t>(dice.Int(low_rank, high_rank)));
  for (int64_t& dim : shape) dim = dice.Int(1, 4);
  return shape;
}

// A shape that broadcasts with `shape`: some leading dimensions are missing, some dimensions are 1.
inline Shape Broadcastable(CaseNumbers& dice, const Shape& shape) {
  Shape other(shape.begin() + dice.Int(0, static_cast<int64_t>(shape.size())), shape.end());
  for (int64_t& dim : other) {
    if (dice.Coin()) dim = 1;
  }
  return other;
}

struct OpCase {
  OpType op;
  GradientCase (*make)(CaseNumbers&);
};

// The cases of each group of op families, one file each.
absl::Span<const OpCase> ActivationCases();
absl::Span<const OpCase> AttentionCases();
absl::Span<const OpCase> ElementwiseCases();
absl::Span<const OpCase> MovementCases();
absl::Span<const OpCase> IndexingCases();
absl::Span<const OpCase> NormalisationCases();
absl::Span<const OpCase> ReductionCases();
absl::Span<const OpCase> SpatialCases();

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_GRADIENTS_OP_CASES_H_
