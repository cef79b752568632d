// The arithmetic of exact sums, one value at a time: what the loops of a CPU and the kernels of a GPU both call, so
// that a gradient has the same fixed point wherever it lies. What the formulas mean stands in
// worker/arithmetic/exact_sum.h.
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

// The exponent of a tensor whose gradient was never seen to be other than zero.
inline constexpr int32_t kExponentUnset = std::numeric_limits<int32_t>::min();

// Adding and subtracting this rounds a double of magnitude up to 2^51 to an integer, ties to even, and leaves that
// integer in the low bits of the sum.
inline constexpr double kQuantizeRounder = 6755399441055744.0;  // 1.5 * 2^52

// 2^exponent. REQUIRES: -1022 <= exponent <= 1023.
LS_HD [[gnu::always_inline]] inline double PowerOfTwo(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// The float's bits without its sign: they order like magnitudes, infinities and NaNs last.
LS_HD [[gnu::always_inline]] inline uint32_t MagnitudeOf(float value) {
  return std::bit_cast<uint32_t>(value) & 0x7fffffffu;
}

// value / 2^exponent as an integer, for `scale` = PowerOfTwo(-exponent). Means nothing beyond 2^50.
LS_HD [[gnu::always_inline]] inline int64_t QuantizeElement(float value, double scale) {
  const double rounded = static_cast<double>(value) * scale + kQuantizeRounder;
  return static_cast<int64_t>(std::bit_cast<uint64_t>(rounded) - std::bit_cast<uint64_t>(kQuantizeRounder));
}

// The sum of two integers, which may wrap around where neither means anything.
LS_HD [[gnu::always_inline]] inline int64_t AddExact(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// The float nearest to sum * 2^exponent, ties to even, for `scale` = PowerOfTwo(exponent). REQUIRES: |sum| <= 2^62.
LS_HD [[gnu::always_inline]] inline float DequantizeElement(int64_t sum, double scale) {
  constexpr int64_t kExact = int64_t{1} << 53;
  if (sum > kExact || sum < -kExact) {
    // Too wide for a double: keep whether anything lies below bit 10 in bit 10 itself, far under the last bit of the
    // float to come, so that the one rounding that follows sees the right side of every tie.
    const int64_t low = sum & 1023;
    sum = (sum - low) | (low != 0 ? 1024 : 0);
  }
  return static_cast<float>(static_cast<double>(sum) * scale);
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_ARITHMETIC_EXACT_FORMULAS_H_
