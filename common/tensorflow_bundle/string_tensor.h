// A scalar string tensor as the data files of TensorFlow V2 checkpoints hold it: its length, a checksum of the length,
// its bytes (docs/formats/tensorflow.md).
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_STRING_TENSOR_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_STRING_TENSOR_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The longest string that is read or written.
inline constexpr uint64_t kMaxStringTensorBytes = 32 << 20;

struct StringTensor {
  std::string bytes;  // in the data file
  // Masked, as the index has it: of the length as a number of 4 bytes, its checksum and the string.
  uint32_t crc32c = 0;
};

// REQUIRES: at most kMaxStringTensorBytes.
StringTensor EncodeStringTensor(absl::string_view value);

// The inverse. DataLoss when a checksum differs, or the length does not match the bytes.
absl::StatusOr<std::string> DecodeStringTensor(const StringTensor& tensor);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_STRING_TENSOR_H_
