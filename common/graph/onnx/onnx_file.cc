#include "common/graph/onnx/onnx_file.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/digest/sha256.h"
#include "common/status/status_macros.h"
#include "common/storage/host_file.h"

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

// How many elements the typed fields hold.
int64_t CountTyped(const onnx::TensorProto& message, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return message.float_data_size();
    case DType::kF64:
      return message.double_data_size();
    case DType::kI64:
      return message.int64_data_size();
    case DType::kU64:
    case DType::kU32:
      return message.uint64_data_size();
    default:
      return message.int32_data_size();
  }
}

// Elements from the typed fields. REQUIRES: CountTyped is the tensor's number.
void CopyTyped(const onnx::TensorProto& message, Tensor* tensor) {
  switch (tensor->dtype()) {
    case DType::kF32:
      return CopyElements<float>(message.float_data(), tensor);
    case DType::kF64:
      return CopyElements<double>(message.double_data(), tensor);
    case DType::kI64:
      return CopyElements<int64_t>(message.int64_data(), tensor);
    case DType::kU64:
      return CopyElements<uint64_t>(message.uint64_data(), tensor);
    case DType::kU32:
      return CopyElements<uint32_t>(message.uint64_data(), tensor);
    case DType::kBool:
      return CopyElements<bool>(message.int32_data(), tensor);
    default:
      break;
  }
  if (DTypeSize(tensor->dtype()) == 1) return CopyElements<uint8_t>(message.int32_data(), tensor);
  if (DTypeSize(tensor->dtype()) == 2) return CopyElements<uint16_t>(message.int32_data(), tensor);
  CopyElements<int32_t>(message.int32_data(), tensor);
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

// The file that holds the elements, from `place->offset` on. DataLoss when it does not hold `bytes` there.
absl::StatusOr<std::string> FindExternal(const onnx::TensorProto& message, const std::string& folder, int64_t bytes,
                                         ExternalPlace* place) {
  LS_ASSIGN_OR_RETURN(*place, ReadPlace(message));
  if (place->length >= 0 && place->length != bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", place->length, " bytes of external data; its shape needs ", bytes));
  }
  LS_ASSIGN_OR_RETURN(const std::string path, ResolveInside(folder, place->location));
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", error.message()));
  if (place->offset > static_cast<int64_t>(size) || bytes > static_cast<int64_t>(size) - place->offset) {
    return absl::DataLossError(absl::StrCat(path, " has ", size, " bytes and ends before the ", bytes, " from byte ",
                                            place->offset, " on. It was truncated"));
  }
  return path;
}

// OK when the elements are there, as many as the shape says: only then may memory be taken for them.
absl::Status CheckElements(const onnx::TensorProto& message, DType dtype, const Shape& shape, int64_t bytes) {
  const int64_t raw = static_cast<int64_t>(message.raw_data().size());
  if (raw > 0) {
    if (raw == bytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("has ", raw, " bytes; its shape ", ShapeString(shape), " needs ", bytes));
  }
  const int64_t count = CountTyped(message, dtype);
  if (count == bytes / DTypeSize(dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("has ", count, " elements for the shape ", ShapeString(shape)));
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
  const absl::StatusOr<std::string> bytes = ReadHostFile(path);
  if (!bytes.ok()) {
    return absl::Status(bytes.status().code(), absl::StrCat("cannot read the model ", bytes.status().message()));
  }
  if (!result.model.ParseFromString(*bytes) || result.model.ir_version() < 1 || !result.model.has_graph()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not an ONNX model, or was truncated"));
  }
  result.sha256 = Sha256Hex(*bytes);
  return result;
}

absl::StatusOr<DType> TensorTypeFromOnnx(int element_type) {
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
  const absl::StatusOr<DType> dtype = TensorTypeFromOnnx(message.data_type());
  if (!dtype.ok()) return within(dtype.status());
  const Shape shape(message.dims().begin(), message.dims().end());
  const absl::StatusOr<int64_t> bytes = CheckedByteSize(*dtype, shape);
  if (!bytes.ok()) return within(bytes.status());
  const bool external = message.data_location() == 1;
  ExternalPlace place;
  absl::StatusOr<std::string> path("");
  if (external) path = FindExternal(message, folder, *bytes, &place);
  if (!path.ok()) return within(path.status());
  const absl::Status complete = external ? absl::OkStatus() : CheckElements(message, *dtype, shape, *bytes);
  if (!complete.ok()) return within(complete);
  absl::StatusOr<Tensor> tensor = Tensor::Create(*dtype, shape);
  if (!tensor.ok()) return within(tensor.status());
  if (external) {
    std::ifstream file(*path, std::ios::binary);
    file.seekg(place.offset);
    file.read(reinterpret_cast<char*>(tensor->data()), *bytes);
    if (file.gcount() != *bytes) return within(absl::UnavailableError(absl::StrCat("cannot read ", *path)));
  } else if (!message.raw_data().empty()) {
    std::memcpy(tensor->data(), message.raw_data().data(), message.raw_data().size());
  } else {
    CopyTyped(message, &*tensor);
  }
  if (*dtype == DType::kBool) {
    // Any byte may stand for true in a file, one value in memory.
    auto* bytes_of = reinterpret_cast<uint8_t*>(tensor->data());
    for (int64_t i = 0; i < *bytes; ++i) bytes_of[i] = bytes_of[i] != 0;
  }
  return tensor;
}

}  // namespace lockstep
