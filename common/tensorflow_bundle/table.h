// The table format of the index of a TensorFlow V2 checkpoint (docs/formats/tensorflow.md), which is LevelDB's. Blocks
// of entries with prefix-compressed keys, each with a CRC-32C, an index of the blocks, a footer.
//
// Invariants
//   * Keys ascend strictly by their bytes.
//   * Nothing is read beyond the bytes given, and no allocation depends on a number in them that was not compared with
//     the available bytes.
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_TABLE_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_TABLE_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

using Table = std::map<std::string, std::string>;

inline constexpr size_t kMaxTableBytes = 64 << 20;  // of a file, and of its keys without prefix sharing
inline constexpr size_t kMaxTableEntries = 1'000'000;
inline constexpr size_t kMaxTableKeyBytes = 64 << 10;  // of one key
inline constexpr size_t kTableBlockBytes = 256 << 10;  // after which a block ends

// The bytes of an uncompressed file, identical to TensorFlow's for the same block size. Tests use smaller blocks.
std::string EncodeTable(const Table& table, size_t block_bytes = kTableBlockBytes);

// The entries of a file. `file` is for messages. DataLoss when it is damaged, or no table. InvalidArgument when it is
// compressed, or exceeds a limit above. (BundleReader returns DataLoss for a file with too many bytes.)
absl::StatusOr<Table> ParseTable(absl::string_view bytes, absl::string_view file);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_TABLE_H_
