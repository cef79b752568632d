// The AVX2 kernels of exact_sum, compiled for that instruction set alone. Called by exact_sum.cc where the CPU has it.
// They include nothing but intrinsics: an inline function compiled here could be kept by the linker for everybody.
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_WORKER_COLLECTIVES_EXACT_SUM_AVX2_H_
#define LOCKSTEP_WORKER_COLLECTIVES_EXACT_SUM_AVX2_H_

#include <stdint.h>

namespace lockstep::worker::exact_sum_avx2 {

// REQUIRES: n is a multiple of 8 (Add takes any), the thread rounds to nearest and keeps denormals.
uint32_t QuantizeStore(const float* values, int64_t n, double scale, int64_t* sums);
uint32_t QuantizeAdd(const float* values, int64_t n, double scale, int64_t* sums);
uint32_t LargestMagnitude(const float* values, int64_t n);
void Dequantize(const int64_t* sums, int64_t n, double scale, float* values);
void Add(const int64_t* addends, int64_t n, int64_t* sums);

}  // namespace lockstep::worker::exact_sum_avx2

#endif  // LOCKSTEP_WORKER_COLLECTIVES_EXACT_SUM_AVX2_H_
