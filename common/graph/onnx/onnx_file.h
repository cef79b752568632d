// An ONNX file, parsed and with its size checked, but not interpreted yet.
//
// Threading: immutable; reading blocks on the file system.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_ONNX_FILE_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_ONNX_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"
#include "protos/onnx.pb.h"

namespace lockstep {

struct OnnxFile {
  std::string path;
  std::string sha256;  // of the file itself, lower-case hex
  onnx::ModelProto model;
};

// NotFound, or InvalidArgument when the file is no ONNX model or exceeds protobuf's limit of 2 GiB - 1 byte; larger
// models keep their weights as external data.
absl::StatusOr<OnnxFile> ReadOnnxFile(const std::string& path);

// The type that ONNX numbers `element_type`. InvalidArgument for types that tensors of a job cannot have.
absl::StatusOr<DType> TensorTypeFromOnnx(int element_type);
int OnnxFromDType(DType dtype);  // UNDEFINED for types that ONNX has no number for here

// Returns the tensor with its elements. External data has to lie in `folder` or below it. InvalidArgument for sizes
// that do not fit, DataLoss for a file that is too short.
absl::StatusOr<Tensor> ReadOnnxTensor(const onnx::TensorProto& message, const std::string& folder);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_ONNX_FILE_H_
