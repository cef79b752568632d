// Converts half-precision numbers (IEEE 754 binary16) to float, exactly.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_COMMON_TENSOR_HALF_H_
#define LOCKSTEP_COMMON_TENSOR_HALF_H_

#include <bit>
#include <cstdint>

namespace lockstep {

// NaNs keep their payload bits.
inline float HalfToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = half >> 10 & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  // Zero, or a number below the normal ones: so many times 2^-24.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(fraction) * 0x1p-24f));
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_HALF_H_
