// Sums of float32 gradients whose bits do not depend on the order of the addends or on their distribution over ranks.
// Each logical shard's gradient is quantised by itself to 64-bit fixed point, with one power-of-two exponent per
// tensor, and the integers are added: integer addition is associative.
//
// A value x with exponent e becomes q = x / 2^e, rounded to nearest even; a sum S stands for S * 2^e.
//
// Invariants
//   * |q| <= 2^kMaxBits and at most kMaxLogicalShards shards: a sum of good tensors cannot overflow 64 bits.
//   * The largest magnitude of any shard's element, as float bits with the sign cleared, decides whether a tensor's sum
//     is good: these bits order like the magnitudes, non-finite ones last, and |q| grows with them. Testing this one
//     number is the same as testing each element of each shard for overflow.
//   * The vector and the scalar kernels give the same bits, and neither depends on the thread's rounding or
//     flush-to-zero mode.
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_WORKER_ARITHMETIC_EXACT_SUM_H_
#define LOCKSTEP_WORKER_ARITHMETIC_EXACT_SUM_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "worker/arithmetic/exact_addends.h"
#include "worker/arithmetic/exact_formulas.h"

namespace lockstep::worker {

inline constexpr int kMaxBits = 50;
inline constexpr int kMaxLogicalShards = 4096;
// Free bits above the largest magnitude when an exponent is chosen: the magnitude may grow fourfold in a step without a
// redo.
inline constexpr int kHeadroomBits = 2;
// A tensor whose largest |q| stays below 2^kFloorBits is summed again with an exponent that fits it.
inline constexpr int kFloorBits = 36;
using device::kExponentUnset;

// Magnitudes as float bits, sign cleared: 0 is zero, kNonFiniteBits and above are infinities and NaNs.
inline constexpr uint32_t kNonFiniteBits = 0x7f800000u;

// Quantises `values` with `exponent`; QuantizeStore stores the integers in `sums` (first shard), QuantizeAdd adds them
// (further shards). Returns the largest magnitude of `values`. With kExponentUnset only the magnitude is found, and
// `sums` is zeroed or left alone. `sums` is unspecified when the magnitude is non-finite or Overflows.
// REQUIRES: values.size() == sums.size().
uint32_t QuantizeStore(absl::Span<const float> values, int32_t exponent, absl::Span<int64_t> sums);
uint32_t QuantizeAdd(absl::Span<const float> values, int32_t exponent, absl::Span<int64_t> sums);

// The largest magnitude of `values`; 0 for none.
uint32_t LargestMagnitude(absl::Span<const float> values);

// The float32 nearest to sums[i] * 2^exponent (ties to even). kExponentUnset gives zeros.
// REQUIRES: values.size() == sums.size(), |sums[i]| <= 2^62.
void Dequantize(absl::Span<const int64_t> sums, int32_t exponent, absl::Span<float> values);

// sums[i] += addends[i]. REQUIRES: equal sizes.
void AddInto(absl::Span<const int64_t> addends, absl::Span<int64_t> sums);

// Stores (`store`) or adds `addends` to `sums`; float values are quantised with `exponent`. REQUIRES: equal sizes.
void AddExactly(const ExactAddends& addends, int32_t exponent, bool store, absl::Span<int64_t> sums);

// out[i] = the float32 nearest to the sum of every rank's addend of i (ties to even): AddExactly and Dequantize in one
// pass. kExponentUnset gives zeros. REQUIRES: equal sizes, the sum of all is at most 2^62 in magnitude.
void SumExactly(absl::Span<const ExactAddends> addends, int32_t exponent, absl::Span<float> out);

// Calls fn(part) for the parts of `runs` that lie in [begin, end), in ascending order. REQUIRES: runs ascend.
void ForEachRunIn(absl::Span<const ExactRun> runs, int64_t begin, int64_t end,
                  absl::FunctionRef<void(const ExactRun& part)> fn);

bool IsNonFinite(uint32_t magnitude);
// True when an element of this magnitude would need more than kMaxBits bits. REQUIRES: finite.
bool Overflows(uint32_t magnitude, int32_t exponent);

// The exponent at which `magnitude` has kHeadroomBits free above it. REQUIRES: finite, not zero.
int32_t FittingExponent(uint32_t magnitude);

enum class TensorVerdict {
  kGood,       // the sums are valid
  kRedo,       // sum again, the same samples, with the exponent that FittingExponent gives for this magnitude
  kNonFinite,  // no redo: the whole tensor is NaN
};

// Judges a tensor that was summed with `exponent` by the largest magnitude over all logical shards. Non-finite beats
// overflow; a magnitude of zero is always good; any other magnitude with an unset exponent asks for a redo.
TensorVerdict Judge(uint32_t magnitude, int32_t exponent);

// The exponent for the next step, after a step with `exponent` whose largest magnitude was `magnitude`. It rises at
// once with the magnitude and falls by at most one per step, so that a small tensor with a fluctuating maximum does not
// need a redo at each rise. A magnitude that is zero or non-finite keeps the exponent.
int32_t NextExponent(uint32_t magnitude, int32_t exponent);

namespace exact_sum_internal {
// The two implementations, for tests and benchmarks. Avx2* REQUIRE HasAvx2().
bool HasAvx2();
uint32_t ScalarQuantize(const float* values, int64_t n, double scale, bool add, int64_t* sums);
uint32_t Avx2Quantize(const float* values, int64_t n, double scale, bool add, int64_t* sums);
void ScalarDequantize(const int64_t* sums, int64_t n, double scale, float* values);
void Avx2Dequantize(const int64_t* sums, int64_t n, double scale, float* values);
void ScalarSum(absl::Span<const ExactAddends> addends, int32_t exponent, absl::Span<float> out);
void Avx2Sum(absl::Span<const ExactAddends> addends, int32_t exponent, absl::Span<float> out);
}  // namespace exact_sum_internal

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ARITHMETIC_EXACT_SUM_H_
