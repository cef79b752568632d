// The fixed parts of a table file (table.h).
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_TABLE_LAYOUT_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_TABLE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "common/tensorflow_bundle/varint.h"

namespace lockstep {

inline constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;  // the last 8 bytes of a file, little-endian
inline constexpr size_t kFooterBytes = 48;                   // two handles, zeros, the magic number
inline constexpr size_t kBlockTrailerBytes = 5;              // type of compression, masked CRC-32C of block and type
inline constexpr int kRestartInterval = 16;                  // keys per restart: the first of them shares no prefix

enum BlockCompression : uint8_t { kNotCompressed = 0, kSnappy = 1 };

// Where the content of a block lies in the file.
struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

inline std::string EncodeHandle(const BlockHandle& handle) {
  std::string bytes;
  AppendVarint(handle.offset, bytes);
  AppendVarint(handle.size, bytes);
  return bytes;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_TABLE_LAYOUT_H_
