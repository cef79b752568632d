// One of ONNX's own backend cases, read by the importer: a model with its inputs and expected outputs.
//
// Threading: thread-safe (stateless); reading blocks on the file system.
#ifndef LOCKSTEP_TESTS_CONFORMANCE_ONNX_ONNX_CASE_H_
#define LOCKSTEP_TESTS_CONFORMANCE_ONNX_ONNX_CASE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/ops/ir.h"
#include "common/tensor/tensor.h"

namespace lockstep {

struct OnnxCase {
  Graph graph;  // shapes inferred, in its evaluation form
  std::map<std::string, Tensor> inputs;
  std::vector<Tensor> expected;  // of graph.outputs, in order
  bool single_node = false;      // the file has a single node: tighter bounds apply
};

// Reads a case's folder. Unimplemented, with the reason: it uses ops that are not supported.
absl::StatusOr<OnnxCase> ReadOnnxCase(const std::string& folder);

// The reason of a refusal without its place: the text behind the last "(Op): " of the message.
std::string ReasonOf(const absl::Status& status);

// The difference between the case's expected outputs and those of the reference kernels; empty if there is none.
std::string RunOnnxCase(const OnnxCase& test);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONFORMANCE_ONNX_ONNX_CASE_H_
