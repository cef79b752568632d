#include "worker/arithmetic/exact_sum.h"

#include <xmmintrin.h>

#include <algorithm>
#include <bit>

#include "absl/container/inlined_vector.h"
#include "common/status/check.h"
#include "worker/arithmetic/exact_formulas.h"
#include "worker/arithmetic/exact_sum_avx2.h"

namespace lockstep::worker {
namespace {

double PowerOfTwo(int exponent) {
  LS_CHECK(exponent >= -1022 && exponent <= 1023, "the exponent of a tensor lies in the range of float32");
  return device::PowerOfTwo(exponent);
}

// Round to nearest, denormals kept, nothing trapped: whatever mode the thread is in.
class PlainFloatMode {
 public:
  PlainFloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~PlainFloatMode() { _mm_setcsr(saved_); }
  PlainFloatMode(const PlainFloatMode&) = delete;
  PlainFloatMode& operator=(const PlainFloatMode&) = delete;

 private:
  const unsigned saved_;
};

// The magnitude, as float bits, from which on a float32 is a multiple of 2^exponent; 0 where that is none that a normal
// float32 has.
uint32_t LimitOfRounding(int32_t exponent) {
  const int32_t biased = exponent + 23 + 127;
  return biased >= 1 && biased <= 254 ? static_cast<uint32_t>(biased) << 23 : 0;
}

uint32_t Quantize(absl::Span<const float> values, int32_t exponent, bool add, absl::Span<int64_t> sums) {
  LS_CHECK(values.size() == sums.size(), "one sum per value");
  if (exponent == kExponentUnset) {
    if (!add) std::fill(sums.begin(), sums.end(), 0);
    return LargestMagnitude(values);
  }
  const double scale = PowerOfTwo(-exponent);
  const auto n = static_cast<int64_t>(values.size());
  PlainFloatMode mode;
  return exact_sum_internal::HasAvx2() ? exact_sum_internal::Avx2Quantize(values.data(), n, scale, add, sums.data())
                                       : exact_sum_internal::ScalarQuantize(values.data(), n, scale, add, sums.data());
}

}  // namespace

uint32_t LargestMagnitude(absl::Span<const float> values) {
  uint32_t largest = 0;
  if (exact_sum_internal::HasAvx2()) {
    const size_t whole = values.size() / 8 * 8;
    largest = exact_sum_avx2::LargestMagnitude(values.data(), static_cast<int64_t>(whole));
    values.remove_prefix(whole);
  }
  for (const float value : values) largest = std::max(largest, device::MagnitudeOf(value));
  return largest;
}

uint32_t QuantizeStore(absl::Span<const float> values, int32_t exponent, absl::Span<int64_t> sums) {
  return Quantize(values, exponent, false, sums);
}

uint32_t QuantizeAdd(absl::Span<const float> values, int32_t exponent, absl::Span<int64_t> sums) {
  return Quantize(values, exponent, true, sums);
}

void Dequantize(absl::Span<const int64_t> sums, int32_t exponent, absl::Span<float> values) {
  LS_CHECK(values.size() == sums.size(), "one value per sum");
  if (exponent == kExponentUnset) {
    std::fill(values.begin(), values.end(), 0.0f);
    return;
  }
  const double scale = PowerOfTwo(exponent);
  const auto n = static_cast<int64_t>(values.size());
  PlainFloatMode mode;
  if (exact_sum_internal::HasAvx2()) {
    exact_sum_internal::Avx2Dequantize(sums.data(), n, scale, values.data());
  } else {
    exact_sum_internal::ScalarDequantize(sums.data(), n, scale, values.data());
  }
}

void AddInto(absl::Span<const int64_t> addends, absl::Span<int64_t> sums) {
  LS_CHECK(addends.size() == sums.size(), "one addend per sum");
  const auto n = static_cast<int64_t>(sums.size());
  if (exact_sum_internal::HasAvx2()) {
    exact_sum_avx2::Add(addends.data(), n, sums.data());
    return;
  }
  for (int64_t i = 0; i < n; ++i) sums[i] = device::AddExact(sums[i], addends[i]);
}

void AddExactly(const ExactAddends& addends, int32_t exponent, bool store, absl::Span<int64_t> sums) {
  LS_CHECK(addends.size() == sums.size(), "one addend per sum");
  if (!addends.values.empty()) {
    Quantize(addends.values, exponent, !store, sums);
  } else if (store) {
    std::copy(addends.integers.begin(), addends.integers.end(), sums.begin());
  } else {
    AddInto(addends.integers, sums);
  }
}

void SumExactly(absl::Span<const ExactAddends> addends, int32_t exponent, absl::Span<float> out) {
  for (const ExactAddends& one : addends) LS_CHECK(one.size() == out.size(), "one addend per value");
  if (exponent == kExponentUnset) {
    std::fill(out.begin(), out.end(), 0.0f);
    return;
  }
  PlainFloatMode mode;
  return exact_sum_internal::HasAvx2() ? exact_sum_internal::Avx2Sum(addends, exponent, out)
                                       : exact_sum_internal::ScalarSum(addends, exponent, out);
}

void ForEachRunIn(absl::Span<const ExactRun> runs, int64_t begin, int64_t end,
                  absl::FunctionRef<void(const ExactRun& part)> fn) {
  auto run = std::upper_bound(runs.begin(), runs.end(), begin,
                              [](int64_t at, const ExactRun& candidate) { return at < candidate.end(); });
  for (; run != runs.end() && run->begin < end; ++run) {
    const int64_t first = std::max(begin, run->begin);
    fn({.begin = first, .size = std::min(end, run->end()) - first, .exponent = run->exponent});
  }
}

bool IsNonFinite(uint32_t magnitude) { return magnitude >= kNonFiniteBits; }

bool Overflows(uint32_t magnitude, int32_t exponent) {
  if (exponent == kExponentUnset) return false;
  const double limit = PowerOfTwo(kMaxBits);
  // Exact: a float32 times a power of two. Rounding to an integer cannot carry it over the limit, itself an integer.
  PlainFloatMode mode;
  return static_cast<double>(std::bit_cast<float>(magnitude)) * PowerOfTwo(-exponent) > limit;
}

int32_t FittingExponent(uint32_t magnitude) {
  LS_CHECK(magnitude != 0 && !IsNonFinite(magnitude), "an exponent fits a finite magnitude above zero");
  // magnitude < 2^(top + 1); bit_width handles denormals, whose leading bit stands in the fraction.
  const int biased = static_cast<int>(magnitude >> 23);
  const int top = biased != 0 ? biased - 127 : static_cast<int>(std::bit_width(magnitude)) - 1 - 149;
  return top + 1 + kHeadroomBits - kMaxBits;
}

TensorVerdict Judge(uint32_t magnitude, int32_t exponent) {
  if (IsNonFinite(magnitude)) return TensorVerdict::kNonFinite;
  if (magnitude == 0) return TensorVerdict::kGood;
  if (exponent == kExponentUnset || Overflows(magnitude, exponent)) return TensorVerdict::kRedo;
  // FittingExponent puts the largest |q| into [2^47, 2^48), one step of it doubles |q|.
  constexpr int kMaxFall = kMaxBits - kHeadroomBits - 1 - kFloorBits;
  return exponent - FittingExponent(magnitude) > kMaxFall ? TensorVerdict::kRedo : TensorVerdict::kGood;
}

int32_t NextExponent(uint32_t magnitude, int32_t exponent) {
  if (magnitude == 0 || IsNonFinite(magnitude)) return exponent;
  const int32_t fitting = FittingExponent(magnitude);
  return exponent == kExponentUnset ? fitting : std::max(fitting, exponent - 1);
}

namespace exact_sum_internal {

bool HasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}

uint32_t ScalarQuantize(const float* values, int64_t n, double scale, bool add, int64_t* sums) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    largest = std::max(largest, device::MagnitudeOf(values[i]));
    sums[i] = device::AddExact(device::QuantizeElement(values[i], scale), add ? sums[i] : 0);
  }
  return largest;
}

void ScalarDequantize(const int64_t* sums, int64_t n, double scale, float* values) {
  for (int64_t i = 0; i < n; ++i) values[i] = device::DequantizeElement(sums[i], scale);
}

uint32_t Avx2Quantize(const float* values, int64_t n, double scale, bool add, int64_t* sums) {
  const int64_t whole = n & ~int64_t{7};
  const uint32_t head = add ? exact_sum_avx2::QuantizeAdd(values, whole, scale, sums)
                            : exact_sum_avx2::QuantizeStore(values, whole, scale, sums);
  return std::max(head, ScalarQuantize(values + whole, n - whole, scale, add, sums + whole));
}

void Avx2Dequantize(const int64_t* sums, int64_t n, double scale, float* values) {
  const int64_t whole = n & ~int64_t{7};
  exact_sum_avx2::Dequantize(sums, whole, scale, values);
  ScalarDequantize(sums + whole, n - whole, scale, values + whole);
}

void ScalarSum(absl::Span<const ExactAddends> addends, int32_t exponent, absl::Span<float> out) {
  const double scale = PowerOfTwo(-exponent), unscale = PowerOfTwo(exponent);
  for (size_t i = 0; i < out.size(); ++i) {
    int64_t sum = 0;
    for (const ExactAddends& one : addends) {
      sum = device::AddExact(sum, one.values.empty() ? one.integers[i] : device::QuantizeElement(one.values[i], scale));
    }
    out[i] = device::DequantizeElement(sum, unscale);
  }
}

void Avx2Sum(absl::Span<const ExactAddends> addends, int32_t exponent, absl::Span<float> out) {
  absl::InlinedVector<const int64_t*, 4> integers;
  absl::InlinedVector<const float*, 4> values;
  absl::InlinedVector<ExactAddends, 4> rest;
  const size_t whole = out.size() & ~size_t{7};
  for (const ExactAddends& one : addends) {
    if (!one.values.empty()) values.push_back(one.values.data());
    if (!one.integers.empty()) integers.push_back(one.integers.data());
    rest.push_back(one.subspan(whole, out.size() - whole));
  }
  const double scale = PowerOfTwo(-exponent), unscale = PowerOfTwo(exponent);
  const auto n = static_cast<int64_t>(whole);
  if (integers.empty() && values.size() <= exact_sum_avx2::kMostValues) {
    exact_sum_avx2::SumValues(values.data(), values.size(), n, scale, unscale, LimitOfRounding(exponent), out.data());
  } else {
    exact_sum_avx2::Sum(values.data(), values.size(), integers.data(), integers.size(), n, scale, unscale, out.data());
  }
  ScalarSum(rest, exponent, out.subspan(whole));
}

}  // namespace exact_sum_internal
}  // namespace lockstep::worker
