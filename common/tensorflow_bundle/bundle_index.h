// The index of a TensorFlow V2 checkpoint (docs/formats/tensorflow.md): the data file and the offset of each tensor.
//
// Threading: immutable values; all functions are thread-safe.
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_BUNDLE_INDEX_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_BUNDLE_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/tensor.h"

namespace lockstep {

inline constexpr absl::string_view kIndexSuffix = ".index";
inline constexpr absl::string_view kObjectGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";

// TensorFlow's numbers of types (its DataType). String tensors have an encoding of their own (string_tensor.h).
inline constexpr int kTensorflowString = 7;
int ToTensorflowType(DType dtype);
// nullopt when DType has no such type.
std::optional<DType> FromTensorflowType(int type);
// "complex64", or "type 999".
std::string TensorflowTypeName(int type);

struct BundleEntry {
  std::string key;
  int type = 0;
  Shape shape;
  bool partitioned = false;  // its slices have entries of their own; the fields below are unused
  int shard = 0;
  uint64_t offset = 0;  // in the data file
  uint64_t size = 0;    // bytes there
  uint32_t crc32c = 0;  // masked, of these bytes

  friend bool operator==(const BundleEntry&, const BundleEntry&) = default;
};

struct BundleIndex {
  int shards = 1;
  std::vector<BundleEntry> entries;  // by key

  // Null when there is no such key.
  const BundleEntry* Find(absl::string_view key) const;
};

// The bytes of an index. REQUIRES: entries are sorted by key, and their sizes match shapes and types.
std::string EncodeBundleIndex(const BundleIndex& index);

// Parses the bytes of an index; `file` is for messages. DataLoss on anything malformed: a size that does not match
// shape and type, an offset beyond 63 bits, a shard that does not exist. InvalidArgument for a big-endian or newer
// format, or an entry that is too long; else as ParseTable.
absl::StatusOr<BundleIndex> ParseBundleIndex(absl::string_view bytes, absl::string_view file);

// "PREFIX.data-00000-of-00002"
std::string DataFileName(absl::string_view prefix, int shard, int shards);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_BUNDLE_INDEX_H_
