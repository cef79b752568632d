// The safetensors format (docs/formats/safetensors.md): u64 little-endian N, N bytes of JSON, data.
//
// Reading is stricter than the reference implementation: besides its checks, duplicate keys, unknown fields, numbers
// that are not non-negative integers and NUL in names are refused. Nothing is allocated from a number in the file
// before that number was checked against the file's size and the header limit.
//
// Threading: immutable values; SafetensorsReader is thread-compatible.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SAFETENSORS_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/storage/storage.h"
#include "common/tensor/tensor.h"

namespace lockstep {

inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

struct SafetensorsEntry {
  TensorSpec spec;
  uint64_t begin = 0;  // in the data section
  uint64_t end = 0;

  friend bool operator==(const SafetensorsEntry&, const SafetensorsEntry&) = default;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        // by begin
  std::map<std::string, std::string> metadata;  // __metadata__
  uint64_t data_begin = 0;                      // 8 + N
  uint64_t data_bytes = 0;
};

// The order in which tensors lie in a file: larger elements first, then by name. Indices into `tensors`.
std::vector<int> SafetensorsOrder(absl::Span<const TensorSpec> tensors);

// The first 8 + N bytes of a file that holds exactly `tensors`, in this order, with __metadata__ {"format":"pt"}; the
// data section is then their bytes one after another. InvalidArgument: not in SafetensorsOrder, a name twice, a name
// that is empty, "__metadata__", has NUL or is not UTF-8, a header over the limit.
absl::StatusOr<std::string> EncodeSafetensorsHeader(absl::Span<const TensorSpec> tensors);

// Parses the JSON of a header (without the 8 bytes) and checks it against a data section of `data_bytes`. `file` is
// used in messages. DataLoss on anything malformed.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(absl::string_view json, uint64_t data_bytes,
                                                         absl::string_view file);

// An open file whose header was checked.
class SafetensorsReader {
 public:
  static absl::StatusOr<SafetensorsReader> Open(const Storage& storage, absl::string_view path);

  const SafetensorsHeader& header() const { return header_; }
  // Null when there is none of that name.
  const SafetensorsEntry* Find(absl::string_view name) const;
  // Reads `out.size()` bytes of a tensor, starting `offset` bytes into it. OutOfRange beyond its end; blocks.
  absl::Status Read(const SafetensorsEntry& entry, uint64_t offset, absl::Span<char> out) const;

 private:
  SafetensorsReader() = default;

  SafetensorsHeader header_;
  std::map<std::string, size_t> by_name_;
  std::unique_ptr<ReadableFile> file_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SAFETENSORS_H_
