// Fills memory that nothing wrote yet with what no value is, so that a read of it shows: NaN in every floating type,
// and in the integers of two bytes and more a number that no index, label or token reaches.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_TENSOR_POISON_H_
#define LOCKSTEP_COMMON_TENSOR_POISON_H_

#include <cstddef>

#include "absl/types/span.h"

namespace lockstep {

// Whether this build poisons memory: debug and sanitizer builds do. GCC names no macro for -fsanitize=undefined, so
// that configuration sets LOCKSTEP_POISON.
#if !defined(NDEBUG) || defined(LOCKSTEP_POISON) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kPoisonsMemory = true;
#else
inline constexpr bool kPoisonsMemory = false;
#endif

// REQUIRES: `memory` begins at an even address.
inline void Poison(absl::Span<std::byte> memory) {
  // 0x7ff4 again and again: all exponents are full in F16, BF16, F32 and F64 alike.
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = i % 2 == 0 ? std::byte{0xf4} : std::byte{0x7f};
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_POISON_H_
