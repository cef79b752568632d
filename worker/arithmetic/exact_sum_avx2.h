// The AVX2 kernels of exact_sum, compiled with AVX2 enabled; exact_sum.cc calls them where the CPU has it. Header and
// source include nothing but intrinsics: if an inline function were compiled here, the linker could pick this AVX2 copy
// for the whole program.
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

// out[i] = the float32 nearest to (sum of the quantised values[.][i] and of the integers[.][i]) * unscale, where
// unscale = 1 / scale.
void Sum(const float* const* values, size_t value_count, const int64_t* const* integers, size_t integer_count,
         int64_t n, double scale, double unscale, float* out);
// The same without integers. Up to kMostValues integers of 50 bits have a sum that a double holds exactly. REQUIRES:
// count <= kMostValues. `limit`: the smallest magnitude, as float bits, from which on quantising is exact; 0: unknown.
inline constexpr size_t kMostValues = 8;
void SumValues(const float* const* values, size_t count, int64_t n, double scale, double unscale, uint32_t limit,
               float* out);

}  // namespace lockstep::worker::exact_sum_avx2

#endif  // LOCKSTEP_WORKER_ARITHMETIC_EXACT_SUM_AVX2_H_
