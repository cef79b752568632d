// CRC-32C (Castagnoli) by ISA-L, and the mask that TensorFlow's record format puts on it.
//
// Threading: immutable; all functions are thread-safe.
#ifndef LOCKSTEP_COMMON_DIGEST_CRC32C_H_
#define LOCKSTEP_COMMON_DIGEST_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep {

// CRC-32C of `bytes`; given the CRC of preceding bytes as `before`, that of both together. Crc32c("123456789") ==
// 0xe3069283.
uint32_t Crc32c(absl::string_view bytes, uint32_t before = 0);

// The stored form of a CRC in event records: ((c >> 15) | (c << 17)) + 0xa282ead8.
uint32_t MaskCrc32c(uint32_t crc);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_DIGEST_CRC32C_H_
