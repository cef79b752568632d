// The arithmetic of exact sums for a single value. CPU loops and GPU kernels call the same functions, so that both
// quantise a gradient to the same integers. worker/arithmetic/exact_sum.h explains the formulas.
//
// REQUIRES in all of them: the processor rounds to nearest and keeps denormals.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_ARITHMETIC_EXACT_FORMULAS_H_
#define LOCKSTEP_WORKER_ARITHMETIC_EXACT_FORMULAS_H_

#include <bit>
#include <cstdint>
#include <limits>

#include "common/math/host_device.h"

namespace lockstep::device {

// The exponent of a tensor whose gradient has been zero so far.
inline constexpr int32_t kExponentUnset = std::numeric_limits<int32_t>::min();

// Adding and subtracting this rounds a double of magnitude up to 2^51 to an integer, ties to even, and leaves that
// integer in the low bits of the sum.
inline constexpr double kQuantizeRounder = 6755399441055744.0;  // 1.5 * 2^52

// 2^exponent. REQUIRES: -1022 <= exponent <= 1023.
LS_HD [[gnu::always_inline]] inline double PowerOfTwo(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// The float's bits without its sign. They order like the absolute values, with infinities and NaNs last.
LS_HD [[gnu::always_inline]] inline uint32_t MagnitudeOf(float value) {
  return std::bit_cast<uint32_t>(value) & 0x7fffffffu;
}

// value / 2^exponent, rounded to an integer, for `scale` = PowerOfTwo(-exponent). Unspecified beyond a magnitude of
// 2^50.
LS_HD [[gnu::always_inline]] inline int64_t QuantizeElement(float value, double scale) {
  const double rounded = static_cast<double>(value) * scale + kQuantizeRounder;
  return static_cast<int64_t>(std::bit_cast<uint64_t>(rounded) - std::bit_cast<uint64_t>(kQuantizeRounder));
}

// a + b. Wraps around: addends of tensors that overflowed are unspecified, and so is their sum.
LS_HD [[gnu::always_inline]] inline int64_t AddExact(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// The float nearest to sum * 2^exponent, ties to even, for `scale` = PowerOfTwo(exponent). REQUIRES: |sum| <= 2^62.
LS_HD [[gnu::always_inline]] inline float DequantizeElement(int64_t sum, double scale) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (sum > kExact || sum < -kExact) {
    // Too wide for a double. Bit 10, far below the last bit of the resulting float, becomes a sticky bit for the bits
    // under it, so that the single rounding below still resolves every tie correctly.
    const int64_t low = sum & 1023;
    sum = (sum - low) | (low != 0 ? 1024 : 0);
  }
  return static_cast<float>(static_cast<double>(sum) * scale);
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_ARITHMETIC_EXACT_FORMULAS_H_
