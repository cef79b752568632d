// What `lockstep.export` (deploy/python) writes into a file because no exporter does: which parameters have
// requires_grad=False, and which tensors of the state dict are others under a second name.
//
// In the model's metadata, names of the state dict, one entry per line:
//   lockstep.frozen    NAME
//   lockstep.tied      SECOND=FIRST
// The first key is there, maybe empty, in every file of `lockstep.export`.
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

// Nothing where the file has none. InvalidArgument for a line of another form.
absl::StatusOr<std::optional<ExportNotes>> FindExportNotes(const onnx::ModelProto& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_EXPORT_NOTES_H_
