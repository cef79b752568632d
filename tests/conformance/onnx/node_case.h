// One of ONNX's own backend cases: a single node with its inputs and what it has to give, as a graph of our op set.
// It knows just enough of ONNX for these cases: attributes that newer versions of an op take as inputs become typed
// attributes again.
//
// Threading: immutable.
#ifndef LOCKSTEP_TESTS_CONFORMANCE_ONNX_NODE_CASE_H_
#define LOCKSTEP_TESTS_CONFORMANCE_ONNX_NODE_CASE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/ir.h"
#include "common/tensor/tensor.h"

namespace lockstep {

struct NodeCase {
  Graph graph;                   // shapes not inferred
  std::vector<Tensor> inputs;    // of graph.inputs, in order
  std::vector<Tensor> expected;  // of graph.outputs, in order
};

// Reads a case's folder. Unimplemented, with the reason, for what lies outside of the op set's canonical form: several
// nodes, other ops, element types that do not train, indices of a pooling.
absl::StatusOr<NodeCase> ReadNodeCase(const std::string& folder);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONFORMANCE_ONNX_NODE_CASE_H_
