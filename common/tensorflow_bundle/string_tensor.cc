#include "common/tensorflow_bundle/string_tensor.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/tensorflow_bundle/varint.h"

namespace lockstep {
namespace {

// Of the length as a number of 4 bytes, however many bytes it takes in the file.
uint32_t CrcOfLength(uint64_t length) {
  std::string fixed;
  AppendFixed32(static_cast<uint32_t>(length), fixed);
  return Crc32c(fixed);
}

}  // namespace

StringTensor EncodeStringTensor(absl::string_view value) {
  StringTensor tensor;
  const uint32_t of_length = CrcOfLength(value.size());
  std::string checksum;
  AppendFixed32(MaskCrc32c(of_length), checksum);
  AppendVarint(value.size(), tensor.bytes);
  absl::StrAppend(&tensor.bytes, checksum, value);
  tensor.crc32c = MaskCrc32c(Crc32c(value, Crc32c(checksum, of_length)));
  return tensor;
}

absl::StatusOr<std::string> DecodeStringTensor(const StringTensor& tensor) {
  absl::string_view rest = tensor.bytes;
  const std::optional<uint64_t> length = TakeVarint(rest);
  if (!length.has_value() || *length > kMaxStringTensorBytes || rest.size() != 4 + *length) {
    return absl::DataLossError("a string does not have the length that it should have");
  }
  const uint32_t of_length = CrcOfLength(*length);
  const bool whole = Fixed32At(rest) == MaskCrc32c(of_length) && tensor.crc32c == MaskCrc32c(Crc32c(rest, of_length));
  if (!whole) return absl::DataLossError("a string has another checksum than it had when it was written");
  return std::string(rest.substr(4));
}

}  // namespace lockstep
