// Lists all nodes of an ONNX file that cannot be trained, where an import stops at the first one.
//
// Threading: immutable; blocks on the file system.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_OP_REPORT_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_OP_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/onnx/import.h"

namespace lockstep {

struct UnsupportedNode {
  std::string node;  // its name, or its first output where it has none
  std::string op;    // with its domain, unless that is ONNX's
  std::string reason;
};

struct OpReport {
  // Number of nodes per op, after functions are inlined.
  std::map<std::string, int64_t> ops;
  // Nodes whose kind cannot be read, whatever their attributes; in the order of the file.
  std::vector<UnsupportedNode> unsupported;
  // The status of an import of the whole file: OK, or its first error.
  absl::Status import;
  // When the import is OK: whether gradients reach the parameters.
  absl::Status training;
  // When the import is OK: how many variables are trained, and the import's warnings.
  int64_t parameters = 0;
  std::vector<std::string> warnings;

  bool ok() const { return unsupported.empty() && import.ok() && training.ok(); }
};

// With options.batch 0 the import binds a symbolic batch to 2 samples, if there is one. InvalidArgument for a file
// whose functions cannot be inlined.
absl::StatusOr<OpReport> ReportOps(const OnnxFile& file, OnnxImportOptions options);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_OP_REPORT_H_
