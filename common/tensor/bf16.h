// bfloat16, the upper half of a float: 8 exponent bits and 7 fraction bits. Values are computed as floats and rounded
// to the nearest, ties to even, when they are stored.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_TENSOR_BF16_H_
#define LOCKSTEP_COMMON_TENSOR_BF16_H_

#include <bit>
#include <cstdint>

#include "common/math/host_device.h"

namespace lockstep {

struct Bf16 {
  uint16_t bits;

  Bf16() = default;
  // Values that round beyond the largest finite number become infinite; NaNs become quiet NaNs.
  LS_HD Bf16(float value) : bits(Rounded(std::bit_cast<uint32_t>(value))) {}
  LS_HD operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }

 private:
  LS_HD static uint16_t Rounded(uint32_t value) {
    constexpr uint32_t kSign = 0x80000000u;
    constexpr uint32_t kInfinity = 0x7f800000u;
    if ((value & ~kSign) > kInfinity) return static_cast<uint16_t>(value >> 16 | 0x40u);
    return static_cast<uint16_t>((value + 0x7fffu + (value >> 16 & 1u)) >> 16);
  }
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_BF16_H_
