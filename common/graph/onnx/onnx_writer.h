// Writes a graph with its weights as an ONNX model, in opset 20 or the first later one that has all its ops. The batch
// stays symbolic where the graph allows it. Weights are initialisers under their own names; beyond `external_bytes`
// they go to a file beside the model, since protobuf is limited to 2 GiB.
//
// Reading such a file again (import.h) gives a graph that computes the same.
//
// Threading: immutable; writing blocks on the storage.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_ONNX_WRITER_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_ONNX_WRITER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/graph/ops/ir.h"
#include "common/storage/storage.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// The elements of a variable, with its type and shape.
using VariableReader = std::function<absl::StatusOr<Tensor>(const Variable& variable)>;

struct OnnxWriteOptions {
  // The batch that the graph was imported for; attributes may hold it.
  int64_t batch = 1;
  // Writes the file for batches of this size alone, with every shape known.
  std::optional<int64_t> only_batch = {};
  // When all weights together have more bytes, they go to NAME.data.
  int64_t external_bytes = int64_t{1} << 30;
  std::string program;  // as producer_version
};

struct OnnxWritten {
  int64_t opset = 0;
  bool open_batch = false;  // false: the file is for one batch alone
  int64_t weight_bytes = 0;
  bool external = false;
};

// Writes `name`, and `name`.data where the weights need it, in place of what is there: a reader finds the old files or
// the new ones, and the model only after its weights. InvalidArgument names the node that ONNX has no op for, or says
// that the graph computes with `options.batch` where another one is asked for; errors of `read` and of the storage are
// passed on.
absl::StatusOr<OnnxWritten> WriteOnnx(const Graph& graph, const VariableReader& read, const OnnxWriteOptions& options,
                                      Storage& storage, const std::string& name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_ONNX_WRITER_H_
