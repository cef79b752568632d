// Sums of float32 gradients whose bits do not depend on who computed which part in which order. Each logical shard's
// gradient is quantised by itself to 64-bit fixed point with one power-of-two exponent per tensor and added as
// integers; integer addition is associative.
//
// A value x with exponent e becomes q = x / 2^e, rounded to nearest even; a sum S stands for S * 2^e.
//
// Invariants
//   * |q| <= 2^kMaxBits and at most kMaxLogicalShards shards: a sum of good tensors cannot overflow.
//   * Everything a decision needs is the largest magnitude of any shard's element, as float bits with the sign
//     cleared: these order like the magnitudes, non-finite ones come last, and |q| <= 2^kMaxBits is monotonic in
//     them. So "overflow tested per shard element" is a test of that one number, whoever held the element.
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
// Free bits above the largest magnitude when an exponent is chosen: it may grow fourfold in a step without a redo.
inline constexpr int kHeadroomBits = 2;
// A tensor whose largest |q| stays below 2^kFloorBits is summed again with an exponent that fits it.
inline constexpr int kFloorBits = 36;
using device::kExponentUnset;

// Magnitudes as float bits, sign cleared: 0 is zero, kNonFiniteBits and above are infinities and NaNs.
inline constexpr uint32_t kNonFiniteBits = 0x7f800000u;

// Quantises `values` with `exponent` and stores (first shard) or adds (further ones) into `sums`. Returns the largest
// magnitude of `values`. With kExponentUnset only the magnitude is found, and `sums` is zeroed or left alone.
// Where the magnitude is non-finite or Overflows, what stands in `sums` means nothing.
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

// Stores `addends` in `sums`, or adds them. REQUIRES: equal sizes.
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
  kGood,       // the sums are the gradient
  kRedo,       // sum again, the same samples, with the exponent that FittingExponent gives for this magnitude
  kNonFinite,  // no redo: the whole tensor is NaN
};

// What the largest magnitude over all logical shards says about a tensor that was summed with `exponent`.
// Non-finite beats overflow; a magnitude of zero is always good; an unset exponent asks for a redo otherwise.
TensorVerdict Judge(uint32_t magnitude, int32_t exponent);

// The exponent of the next step, after a step that was summed with `exponent` and found good with `magnitude`. Zero
// keeps the exponent. It rises at once with the magnitude and falls by at most one per step, so that a tensor of few
// elements, whose largest one jumps about, does not pay a redo for each jump. Non-finite keeps it as well.
int32_t NextExponent(uint32_t magnitude, int32_t exponent);

namespace exact_sum_internal {
// The two implementations, for tests and benches. Avx2* REQUIRE HasAvx2().
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
