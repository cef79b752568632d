// Which nodes of an ONNX file can be trained and which cannot: the whole list, where an import stops at the first.
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
  // Nodes per op, functions written out.
  std::map<std::string, int64_t> ops;
  // By their kind alone, in the order of the file.
  std::vector<UnsupportedNode> unsupported;
  // What an import of the whole file says beyond: OK, or its first error.
  absl::Status import;
  // Of that import, when it is OK: whether gradients reach its parameters.
  absl::Status training;
  // Likewise: how many variables it trains, and what it warns of.
  int64_t parameters = 0;
  std::vector<std::string> warnings;

  bool ok() const { return unsupported.empty() && import.ok() && training.ok(); }
};

// With options.batch 0 the import binds a symbolic batch to 2 samples, if there is one. InvalidArgument for a file
// whose functions cannot be written out.
absl::StatusOr<OpReport> ReportOps(const OnnxFile& file, OnnxImportOptions options);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_OP_REPORT_H_
