// One of ONNX's own backend cases, read by the importer: a model with its inputs and what it has to give.
//
// Threading: immutable; reading blocks on the file system.
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
  bool single_node = false;      // of the file: held to tighter bounds
};

// Reads a case's folder. Unimplemented, with the reason, for what the op set does not have.
absl::StatusOr<OnnxCase> ReadOnnxCase(const std::string& folder);

// Why a case was refused, without the place: what stands behind the last "(Op): " of the message.
std::string ReasonOf(const absl::Status& status);

// What differs between the case's outputs and those of the reference kernels; empty when nothing does.
std::string RunOnnxCase(const OnnxCase& test);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONFORMANCE_ONNX_ONNX_CASE_H_
