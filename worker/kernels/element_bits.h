// Elements of any type as bits, for kernels that move elements without looking at them.
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

// A number of the element type. REQUIRES: the type can hold it, BF16 up to rounding; Bits has the type's size. 0 is the
// only one of the other floating-point types below F32.
template <typename Bits>
Bits NumberBits(DType dtype, double number) {
  if (dtype == DType::kF32) return BitsOf<Bits>(static_cast<float>(number));
  if (dtype == DType::kF64) return BitsOf<Bits>(number);
  if (dtype == DType::kBF16) return BitsOf<Bits>(Bf16(static_cast<float>(number)).bits);
  if (IsFloating(dtype)) return 0;
  return static_cast<Bits>(static_cast<int64_t>(number));
}

// What an index outside of a tensor picks: NaN, or 0 in a type that has none.
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
