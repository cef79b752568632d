#include "common/graph/onnx/onnx_writer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/graph_editor.h"
#include "common/graph/onnx/onnx_file.h"
#include "common/graph/onnx/open_batch.h"
#include "common/graph/onnx/write_nodes.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep {
namespace {

// Where external tensors begin: pages can be mapped.
constexpr int64_t kPage = 4096;
// What protobuf writes at most.
constexpr size_t kMostModelBytes = (size_t{1} << 31) - 1;
// Smaller ones stay in the model.
constexpr int64_t kSmallestExternal = 1024;

// The oldest version of the format that has the opset.
int64_t IrVersion(int64_t opset) { return opset >= 23 ? 11 : opset >= 21 ? 10 : 9; }

// A file that takes the place of `path` when it is complete.
class Replacement {
 public:
  Replacement(Storage& storage, std::string path) : storage_(storage), path_(std::move(path)) {}
  ~Replacement() {
    if (file_ != nullptr) (void)storage_.RemoveTree(Scratch());
  }
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  absl::Status Append(absl::string_view bytes) {
    if (file_ == nullptr) {
      LS_RETURN_IF_ERROR(storage_.RemoveTree(Scratch()));
      LS_ASSIGN_OR_RETURN(file_, storage_.CreateFile(Scratch(), Access::kShared));
    }
    LS_RETURN_IF_ERROR(file_->Append(bytes));
    size_ += static_cast<int64_t>(bytes.size());
    return absl::OkStatus();
  }
  int64_t size() const { return size_; }

  // Everything is on the disk, beside the place.
  absl::Status Finish() {
    LS_RETURN_IF_ERROR(file_->Sync());
    return file_->Close();
  }

  absl::Status TakePlace() {
    LS_RETURN_IF_ERROR(storage_.Replace(Scratch(), path_));
    file_ = nullptr;
    return absl::OkStatus();
  }

 private:
  std::string Scratch() const { return path_ + ".partial"; }

  Storage& storage_;
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  int64_t size_ = 0;
};

absl::string_view BytesOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.byte_size())};
}

// Elements behind the end of the file so far, from the next page on.
absl::Status WriteExternal(const Tensor& value, const std::string& location, Replacement* data, onnx::TensorProto* to) {
  const int64_t gap = (kPage - data->size() % kPage) % kPage;
  LS_RETURN_IF_ERROR(data->Append(std::string(static_cast<size_t>(gap), '\0')));
  const auto entry = [&](const char* key, const std::string& text) {
    onnx::StringPair* pair = to->add_external_data();
    pair->set_key(key);
    pair->set_value(text);
  };
  to->set_data_location(1);
  entry("location", location);
  entry("offset", absl::StrCat(data->size()));
  entry("length", absl::StrCat(value.byte_size()));
  return data->Append(BytesOf(value));
}

void WriteValueInfo(const std::string& name, DType dtype, const Shape& shape, onnx::ValueInfoProto* to) {
  to->set_name(name);
  onnx::TensorTypeProto* type = to->mutable_type()->mutable_tensor_type();
  type->set_elem_type(OnnxFromDType(dtype));
  type->mutable_shape();  // a scalar has one too
  for (const int64_t dim : shape) {
    onnx::DimensionProto* message = type->mutable_shape()->add_dim();
    if (dim == kBatchDim) message->set_dim_param("batch");
    if (dim >= 0) message->set_dim_value(dim);
  }
}

void WriteEnds(const BatchOpening& model, onnx::GraphProto* to) {
  const auto shape_of = [&](const std::string& name) {
    const auto found = model.shapes.find(name);
    return found == model.shapes.end() ? model.graph.values.at(name).shape : found->second;
  };
  for (const GraphInput& input : model.graph.inputs) {
    WriteValueInfo(input.name, input.dtype, shape_of(input.name), to->add_input());
  }
  for (const std::string& output : model.graph.outputs) {
    WriteValueInfo(output, model.graph.values.at(output).dtype, shape_of(output), to->add_output());
  }
}

absl::StatusOr<Tensor> ReadVariable(const Variable& variable, const VariableReader& read) {
  LS_ASSIGN_OR_RETURN(Tensor value, read(variable));
  if (value.dtype() == variable.dtype && value.shape() == variable.shape) return value;
  return absl::InvalidArgumentError(absl::StrCat("'", variable.name, "' is ", DTypeName(value.dtype()),
                                                 ShapeString(value.shape()), ", expected ", DTypeName(variable.dtype),
                                                 ShapeString(variable.shape)));
}

// Makes the graph one for `batch`.
absl::Status CloseBatch(int64_t batch, BatchOpening& model) {
  for (GraphInput& input : model.graph.inputs) {
    const Shape& open = model.shapes.at(input.name);
    for (size_t d = 0; d < open.size(); ++d) {
      if (open[d] == kBatchDim) input.shape[d] = batch;
    }
  }
  model.shapes.clear();
  model.graph.values.clear();
  return InferShapes(&model.graph);
}

}  // namespace

absl::StatusOr<OnnxWritten> WriteOnnx(const Graph& graph, const VariableReader& read, const OnnxWriteOptions& options,
                                      Storage& storage, const std::string& name) {
  LS_ASSIGN_OR_RETURN(BatchOpening model, OpenBatch(graph, options.batch));
  OnnxWritten written;
  written.open_batch = model.open && !options.only_batch.has_value();
  if (options.only_batch.has_value() && model.open) {
    LS_RETURN_IF_ERROR(CloseBatch(*options.only_batch, model));
  } else if (options.only_batch.value_or(options.batch) != options.batch) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model computes with batches of ", options.batch, "; no other can be asked of it"));
  }
  onnx::ModelProto message;
  LS_ASSIGN_OR_RETURN(written.opset, WriteOnnxNodes(model.graph, message.mutable_graph()));
  message.set_ir_version(IrVersion(written.opset));
  message.set_producer_name("lockstep");
  message.set_producer_version(options.program);
  message.add_opset_import()->set_version(written.opset);
  message.mutable_graph()->set_name("model");
  WriteEnds(model, message.mutable_graph());
  for (const Variable& variable : graph.variables) {
    LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(variable.dtype, variable.shape));
    written.weight_bytes += bytes;
  }
  written.external = written.weight_bytes > options.external_bytes;
  const std::string data_name = name + ".data";
  Replacement data(storage, data_name);
  Replacement file(storage, name);
  for (const Variable& variable : graph.variables) {
    LS_ASSIGN_OR_RETURN(const Tensor value, ReadVariable(variable, read));
    onnx::TensorProto* tensor = message.mutable_graph()->add_initializer();
    WriteOnnxTensorSpec(variable.name, variable.dtype, variable.shape, tensor);
    if (written.external && value.byte_size() >= kSmallestExternal) {
      LS_RETURN_IF_ERROR(WriteExternal(value, std::string(BaseName(data_name)), &data, tensor));
    } else {
      tensor->set_raw_data(value.data(), static_cast<size_t>(value.byte_size()));
    }
  }
  if (message.ByteSizeLong() > kMostModelBytes) {
    return absl::InvalidArgumentError(absl::StrCat("without its weights the model has ", message.ByteSizeLong(),
                                                   " bytes; an ONNX file has at most ", kMostModelBytes));
  }
  LS_RETURN_IF_ERROR(file.Append(message.SerializeAsString()));
  LS_RETURN_IF_ERROR(file.Finish());
  if (data.size() > 0) {
    LS_RETURN_IF_ERROR(data.Finish());
    // Whoever is killed here leaves no model rather than an old one that reads new weights.
    LS_RETURN_IF_ERROR(storage.RemoveTree(name));
    LS_RETURN_IF_ERROR(storage.SyncDirectory(ParentPath(name)));
    LS_RETURN_IF_ERROR(data.TakePlace());
  }
  LS_RETURN_IF_ERROR(file.TakePlace());
  return written;
}

}  // namespace lockstep
