// Vectors as wide as the instruction set's registers, and fused multiply-add where it has one.
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_VECTOR_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_VECTOR_H_

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>

#include "worker/kernels/cpu/code.h"

namespace lockstep::device::cpu::LS_CODE {

#if defined(__AVX512F__)
inline constexpr int kVector = 16;
#elif defined(__FMA__)
inline constexpr int kVector = 8;
#else
inline constexpr int kVector = 4;
#endif

typedef float Vector __attribute__((vector_size(kVector * sizeof(float))));
typedef float UnalignedVector __attribute__((vector_size(kVector * sizeof(float)), aligned(4), may_alias));

[[gnu::always_inline]] inline Vector LoadVector(const float* from) {
  return *reinterpret_cast<const UnalignedVector*>(from);
}
[[gnu::always_inline]] inline void StoreVector(float* to, Vector value) {
  *reinterpret_cast<UnalignedVector*>(to) = value;
}

// a * b + c
[[gnu::always_inline]] inline Vector MultiplyAdd(float a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return (Vector)_mm512_fmadd_ps(_mm512_set1_ps(a), (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Vector)_mm256_fmadd_ps(_mm256_set1_ps(a), (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

// The same for each element of `a`.
[[gnu::always_inline]] inline Vector MultiplyAdd(Vector a, Vector b, Vector c) {
#if defined(__AVX512F__)
  return (Vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  return (Vector)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

// Half as many integers of 64 bits.
inline constexpr int kWideVector = kVector / 2;
typedef uint64_t WideVector __attribute__((vector_size(kWideVector * sizeof(uint64_t))));

// The products of the lower halves of lanes.
[[gnu::always_inline]] inline WideVector MultiplyLow(WideVector a, WideVector b) {
#if defined(__AVX512F__)
  return (WideVector)_mm512_maskz_mul_epu32(0xff, (__m512i)a,
                                            (__m512i)b);  // without a mask g++ 12 warns of its own header
#elif defined(__AVX2__)
  return (WideVector)_mm256_mul_epu32((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (WideVector)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

// a * b + c for single elements, with the bits of MultiplyAdd; the compiler vectorises loops over it.
[[gnu::always_inline]] inline float MultiplyAddOne(float a, float b, float c) {
#if defined(__FMA__) || defined(__AVX512F__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_VECTOR_H_
