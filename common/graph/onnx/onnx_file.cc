#include "common/graph/onnx/onnx_file.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxFileBytes = (int64_t{1} << 31) - 1;

struct ElementTypeRow {
  int onnx;
  DType dtype;
};
constexpr std::array kElementTypes = {
    ElementTypeRow{onnx::FLOAT, DType::kF32},    ElementTypeRow{onnx::UINT8, DType::kU8},
    ElementTypeRow{onnx::INT8, DType::kI8},      ElementTypeRow{onnx::UINT16, DType::kU16},
    ElementTypeRow{onnx::INT16, DType::kI16},    ElementTypeRow{onnx::INT32, DType::kI32},
    ElementTypeRow{onnx::INT64, DType::kI64},    ElementTypeRow{onnx::BOOL, DType::kBool},
    ElementTypeRow{onnx::FLOAT16, DType::kF16},  ElementTypeRow{onnx::DOUBLE, DType::kF64},
    ElementTypeRow{onnx::UINT32, DType::kU32},   ElementTypeRow{onnx::UINT64, DType::kU64},
    ElementTypeRow{onnx::BFLOAT16, DType::kBF16}};

template <typename To, typename Field>
void CopyElements(const Field& field, Tensor* tensor) {
  To* out = reinterpret_cast<To*>(tensor->data());
  for (int i = 0; i < field.size(); ++i) out[i] = static_cast<To>(field.Get(i));
}

// Elements from the typed fields; the number of elements was checked.
absl::Status CopyTyped(const onnx::TensorProto& message, Tensor* tensor) {
  const auto check = [&](int64_t size) {
    if (size == tensor->num_elements()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("has ", size, " elements for the shape ", ShapeString(tensor->shape())));
  };
  switch (tensor->dtype()) {
    case DType::kF32:
      LS_RETURN_IF_ERROR(check(message.float_data_size()));
      CopyElements<float>(message.float_data(), tensor);
      return absl::OkStatus();
    case DType::kF64:
      LS_RETURN_IF_ERROR(check(message.double_data_size()));
      CopyElements<double>(message.double_data(), tensor);
      return absl::OkStatus();
    case DType::kI64:
      LS_RETURN_IF_ERROR(check(message.int64_data_size()));
      CopyElements<int64_t>(message.int64_data(), tensor);
      return absl::OkStatus();
    case DType::kU64:
      LS_RETURN_IF_ERROR(check(message.uint64_data_size()));
      CopyElements<uint64_t>(message.uint64_data(), tensor);
      return absl::OkStatus();
    case DType::kU32:
      LS_RETURN_IF_ERROR(check(message.uint64_data_size()));
      CopyElements<uint32_t>(message.uint64_data(), tensor);
      return absl::OkStatus();
    default:
      break;
  }
  LS_RETURN_IF_ERROR(check(message.int32_data_size()));
  switch (DTypeSize(tensor->dtype())) {
    case 1:
      CopyElements<uint8_t>(message.int32_data(), tensor);
      return absl::OkStatus();
    case 2:
      CopyElements<uint16_t>(message.int32_data(), tensor);
      return absl::OkStatus();
    default:
      CopyElements<int32_t>(message.int32_data(), tensor);
      return absl::OkStatus();
  }
}

struct ExternalPlace {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;  // to be the tensor's size when not given
};

absl::StatusOr<ExternalPlace> ReadPlace(const onnx::TensorProto& message) {
  ExternalPlace place;
  for (const onnx::StringPair& entry : message.external_data()) {
    bool good = true;
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() == "offset") good = absl::SimpleAtoi(entry.value(), &place.offset) && place.offset >= 0;
    if (entry.key() == "length") good = absl::SimpleAtoi(entry.value(), &place.length) && place.length >= 0;
    if (!good) return absl::InvalidArgumentError(absl::StrCat("external data has ", entry.key(), " ", entry.value()));
  }
  if (place.location.empty()) return absl::InvalidArgumentError("external data without a location");
  return place;
}

// The file of a location, which must not lead out of the folder, neither by its name nor by links.
absl::StatusOr<std::string> ResolveInside(const std::string& folder, const std::string& location) {
  std::error_code error;
  const std::filesystem::path root = std::filesystem::canonical(folder.empty() ? "." : folder, error);
  if (error) return absl::NotFoundError(absl::StrCat("cannot open the folder ", folder));
  const std::filesystem::path file = std::filesystem::canonical(root / location, error);
  if (error) return absl::NotFoundError(absl::StrCat("external data ", location, " is not in the model's folder"));
  const std::filesystem::path relative = file.lexically_relative(root);
  if (relative.empty() || *relative.begin() == "..") {
    return absl::InvalidArgumentError(
        absl::StrCat("external data ", location, " lies outside of the model's folder; move it there"));
  }
  return file.string();
}

absl::Status ReadExternal(const onnx::TensorProto& message, const std::string& folder, Tensor* tensor) {
  LS_ASSIGN_OR_RETURN(const ExternalPlace place, ReadPlace(message));
  if (place.length >= 0 && place.length != tensor->byte_size()) {
    return absl::InvalidArgumentError(absl::StrCat("has ", place.length, " bytes of external data; its shape ",
                                                   ShapeString(tensor->shape()), " needs ", tensor->byte_size()));
  }
  LS_ASSIGN_OR_RETURN(const std::string path, ResolveInside(folder, place.location));
  std::ifstream file(path, std::ios::binary);
  file.seekg(place.offset);
  file.read(reinterpret_cast<char*>(tensor->data()), tensor->byte_size());
  if (file.gcount() == tensor->byte_size()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, " ends before byte ", place.offset + tensor->byte_size(), ". It was truncated"));
}

}  // namespace

absl::StatusOr<OnnxFile> ReadOnnxFile(const std::string& path) {
  OnnxFile result;
  result.path = path;
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return absl::NotFoundError(absl::StrCat("cannot read the model ", path, ": ", error.message()));
  if (static_cast<int64_t>(size) > kMaxFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has ", size, " bytes; an ONNX file has at most ",
                                                   kMaxFileBytes, ". Export it with external data"));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (bytes.size() != size) return absl::UnavailableError(absl::StrCat("cannot read ", path));
  if (!result.model.ParseFromString(bytes) || result.model.ir_version() < 1 || !result.model.has_graph()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not an ONNX model, or was truncated"));
  }
  result.sha256 = Sha256Hex(bytes);
  return result;
}

absl::StatusOr<DType> DTypeFromOnnx(int element_type) {
  for (const ElementTypeRow& row : kElementTypes) {
    if (row.onnx == element_type) return row.dtype;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "element type ", element_type, " of ONNX (strings, complex numbers, 4 and 8 bit floats) is not supported"));
}

int OnnxFromDType(DType dtype) {
  for (const ElementTypeRow& row : kElementTypes) {
    if (row.dtype == dtype) return row.onnx;
  }
  return onnx::UNDEFINED;
}

absl::StatusOr<Tensor> ReadOnnxTensor(const onnx::TensorProto& message, const std::string& folder) {
  const auto within = [&](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat("tensor '", message.name(), "': ", status.message()));
  };
  const absl::StatusOr<DType> dtype = DTypeFromOnnx(message.data_type());
  if (!dtype.ok()) return within(dtype.status());
  const Shape shape(message.dims().begin(), message.dims().end());
  const absl::StatusOr<int64_t> bytes = CheckedByteSize(*dtype, shape);
  if (!bytes.ok()) return within(bytes.status());
  const bool external = message.data_location() == 1;
  const bool raw = !external && (!message.raw_data().empty() || *bytes == 0);
  if (raw && static_cast<int64_t>(message.raw_data().size()) != *bytes) {
    return within(absl::InvalidArgumentError(
        absl::StrCat("has ", message.raw_data().size(), " bytes; its shape ", ShapeString(shape), " needs ", *bytes)));
  }
  absl::StatusOr<Tensor> tensor = Tensor::Create(*dtype, shape);
  if (!tensor.ok()) return within(tensor.status());
  absl::Status filled;
  if (external) {
    filled = ReadExternal(message, folder, &*tensor);
  } else if (raw) {
    if (*bytes > 0) std::memcpy(tensor->data(), message.raw_data().data(), message.raw_data().size());
  } else {
    filled = CopyTyped(message, &*tensor);
  }
  if (!filled.ok()) return within(filled);
  return tensor;
}

}  // namespace lockstep
