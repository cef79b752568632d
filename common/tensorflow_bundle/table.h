// The table of keys and values that the index of a TensorFlow V2 checkpoint is (docs/formats/tensorflow.md): LevelDB's
// file format. Blocks of entries with prefix-compressed keys, each with a CRC-32C, an index of the blocks, a footer.
//
// Invariants
//   * Keys ascend strictly by their bytes.
//   * Nothing is read beyond the bytes given, and nothing is allocated from a number in them before it was compared
//     with what is there.
// Threading: stateless.
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_TABLE_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_TABLE_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

using Table = std::map<std::string, std::string>;

inline constexpr size_t kMaxTableBytes = 64 << 20;  // of a file, and of its keys written out
inline constexpr size_t kMaxTableEntries = 1'000'000;
inline constexpr size_t kMaxTableKeyBytes = 64 << 10;  // of one key
inline constexpr size_t kTableBlockBytes = 256 << 10;  // after which a block ends

// The bytes of a file, without compression, as TensorFlow writes it for the same blocks. `block_bytes`: tests have
// smaller ones.
std::string EncodeTable(const Table& table, size_t block_bytes = kTableBlockBytes);

// The entries of a file. `file` is for messages. DataLoss: it is damaged, or no such file. InvalidArgument: it is
// compressed, or has more bytes, keys or entries than are read. (BundleReader says DataLoss of a file with more bytes.)
absl::StatusOr<Table> ParseTable(absl::string_view bytes, absl::string_view file);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_TABLE_H_
