// Fills uninitialised memory with a pattern that makes reads of it visible: a NaN in every floating type, and in
// integers of two bytes and more a value that no index, label or token reaches.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_TENSOR_POISON_H_
#define LOCKSTEP_COMMON_TENSOR_POISON_H_

#include <cstddef>

#include "absl/types/span.h"

namespace lockstep {

// Whether this build poisons memory: debug and sanitizer builds do. GCC names no macro for -fsanitize=undefined, so
// that configuration sets LOCKSTEP_POISON.
#if !defined(NDEBUG) || defined(LOCKSTEP_POISON) || defined(__SANITIZE_ADDRESS__) || defined(LOCKSTEP_THREAD_SANITIZER)
inline constexpr bool kPoisonsMemory = true;
#else
inline constexpr bool kPoisonsMemory = false;
#endif

// Every two bytes fill the exponents of F16, BF16 and F32. 0x7fa0 also makes the NaN a signalling one in BF16 and F32;
// F64 needs 0x7ff4 in its highest two bytes, which gives quiet ones there.
inline constexpr unsigned char kPoison[] = {0xa0, 0x7f, 0xa0, 0x7f, 0xa0, 0x7f, 0xf4, 0x7f};

// REQUIRES: `memory` begins at an even address.
inline void Poison(absl::Span<std::byte> memory) {
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = std::byte{kPoison[i % sizeof kPoison]};
}

// Whether `memory` is at least eight bytes long and holds the pattern throughout.
inline bool IsPoison(absl::Span<const std::byte> memory) {
  for (size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] != std::byte{kPoison[i % sizeof kPoison]}) return false;
  }
  return memory.size() >= sizeof kPoison;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_POISON_H_
