// Numbers of half precision in float, exactly: IEEE 754 binary16 (F16) and bfloat16 (BF16).
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_TENSOR_HALF_H_
#define LOCKSTEP_COMMON_TENSOR_HALF_H_

#include <bit>
#include <cstdint>

#include "common/tensor/bf16.h"
#include "common/tensor/dtype.h"
#include "common/tensor/tensor.h"

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

inline bool IsHalf(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

// `bits`: those of one number. REQUIRES: IsHalf(dtype).
inline float WidenHalf(DType dtype, uint16_t bits) {
  if (dtype == DType::kF16) return HalfToFloat(bits);
  Bf16 value;
  value.bits = bits;
  return value;
}

// A copy, in F32 if the tensor is of half precision.
Tensor Widened(const Tensor& tensor);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_HALF_H_
