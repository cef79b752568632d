// Integers as TensorFlow's files store them: varints (7 bits per byte, lowest first), and 4 bytes little-endian.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_VARINT_H_
#define LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_VARINT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

inline void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// Removes a varint from the front of `in`; nullopt when it does not end within `in`, or has more than 64 bits.
inline std::optional<uint64_t> TakeVarint(absl::string_view& in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

inline void AppendFixed32(uint32_t value, std::string& out) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

// The number in the first 4 bytes. REQUIRES: `in` has as many.
inline uint32_t Fixed32At(absl::string_view in) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(static_cast<uint8_t>(in[i])) << (8 * i);
  return value;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSORFLOW_BUNDLE_VARINT_H_
