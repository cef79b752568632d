// The AVX2 kernels of exact_sum, compiled for that instruction set alone. Called by exact_sum.cc where the CPU has it.
// They include nothing but intrinsics: an inline function compiled here could be kept by the linker for everybody.
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_WORKER_ARITHMETIC_EXACT_SUM_AVX2_H_
#define LOCKSTEP_WORKER_ARITHMETIC_EXACT_SUM_AVX2_H_

#include <stddef.h>
#include <stdint.h>

namespace lockstep::worker::exact_sum_avx2 {

// REQUIRES: n is a multiple of 8 (Add takes any), the thread rounds to nearest and keeps denormals.
uint32_t QuantizeStore(const float* values, int64_t n, double scale, int64_t* sums);
uint32_t QuantizeAdd(const float* values, int64_t n, double scale, int64_t* sums);
uint32_t LargestMagnitude(const float* values, int64_t n);
void Dequantize(const int64_t* sums, int64_t n, double scale, float* values);
void Add(const int64_t* addends, int64_t n, int64_t* sums);

// out = the float nearest to the sum of the quantised values and the integers, times unscale = 1 / scale.
void Sum(const float* const* values, size_t value_count, const int64_t* const* integers, size_t integer_count,
         int64_t n, double scale, double unscale, float* out);
// The same of values alone. So many sums of integers of 50 bits are doubles, exactly. REQUIRES: at most kMostValues.
// `limit`: the smallest magnitude, as float bits, from which on no value is rounded when it is quantised; 0: unknown.
inline constexpr size_t kMostValues = 8;
void SumValues(const float* const* values, size_t count, int64_t n, double scale, double unscale, uint32_t limit,
               float* out);

}  // namespace lockstep::worker::exact_sum_avx2

#endif  // LOCKSTEP_WORKER_ARITHMETIC_EXACT_SUM_AVX2_H_
