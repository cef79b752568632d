// An ONNX file as it lies on disk: parsed, its size and external data checked, nothing interpreted yet.
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

// NotFound, or InvalidArgument for what is no ONNX model. At most 2 GiB - 1 byte, which is protobuf's limit: larger
// models keep their weights as external data.
absl::StatusOr<OnnxFile> ReadOnnxFile(const std::string& path);

// The element type under ONNX's number. InvalidArgument for types that tensors of a job cannot have.
absl::StatusOr<DType> DTypeFromOnnx(int element_type);
int OnnxFromDType(DType dtype);  // UNDEFINED for types that ONNX has no number for here

// A tensor with its elements. External data has to lie in `folder` or below it. InvalidArgument for sizes that do not
// fit, DataLoss for a file that is too short.
absl::StatusOr<Tensor> ReadOnnxTensor(const onnx::TensorProto& message, const std::string& folder);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_ONNX_FILE_H_
