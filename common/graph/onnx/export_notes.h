// The facts that `lockstep.export` (deploy/python) adds to a file because no exporter writes them: which parameters
// have requires_grad=False, and which names of the state dict are second names of other tensors.
//
// They stand in the model's metadata under two keys, with names of the state dict, one entry per line:
//   lockstep.frozen    NAME
//   lockstep.tied      SECOND=FIRST
// Every file of `lockstep.export` has the first key, though its value may be empty.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_EXPORT_NOTES_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_EXPORT_NOTES_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "protos/onnx.pb.h"

namespace lockstep {

struct ExportNotes {
  std::set<std::string> frozen;
  std::map<std::string, std::string> tied;  // second name -> first
};

// nullopt when the file has none. InvalidArgument for a malformed line.
absl::StatusOr<std::optional<ExportNotes>> FindExportNotes(const onnx::ModelProto& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_EXPORT_NOTES_H_
