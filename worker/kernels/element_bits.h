// Elements of any type as bit patterns, for kernels that move elements without interpreting them.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_ELEMENT_BITS_H_
#define LOCKSTEP_WORKER_KERNELS_ELEMENT_BITS_H_

#include <cstdint>
#include <cstring>
#include <limits>

#include "common/tensor/bf16.h"
#include "common/tensor/dtype.h"

namespace lockstep::device {

template <typename Bits, typename Number>
Bits BitsOf(Number number) {
  Bits bits = 0;
  if constexpr (sizeof(bits) == sizeof(number)) std::memcpy(&bits, &number, sizeof(bits));
  return bits;
}

// The bit pattern of `number` in type `dtype`. REQUIRES: the type can represent it (BF16 rounds); Bits has the type's
// size; for F16 and the F8 types the number is 0.
template <typename Bits>
Bits NumberBits(DType dtype, double number) {
  if (dtype == DType::kF32) return BitsOf<Bits>(static_cast<float>(number));
  if (dtype == DType::kF64) return BitsOf<Bits>(number);
  if (dtype == DType::kBF16) return BitsOf<Bits>(Bf16(static_cast<float>(number)).bits);
  if (IsFloating(dtype)) return 0;
  return static_cast<Bits>(static_cast<int64_t>(number));
}

// The element that an out-of-range index gathers: NaN, or 0 in a type without NaN.
template <typename Bits>
Bits OutsideBits(DType dtype) {
  switch (dtype) {
    case DType::kF8E5M2:
    case DType::kF8E4M3:
      return static_cast<Bits>(0x7f);
    case DType::kF16:
      return static_cast<Bits>(0x7e00);
    case DType::kBF16:
      return static_cast<Bits>(0x7fc0);
    default:
      return IsFloating(dtype) ? NumberBits<Bits>(dtype, std::numeric_limits<double>::quiet_NaN()) : Bits{0};
  }
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_ELEMENT_BITS_H_
