#include "worker/arithmetic/exact_sum_avx2.h"

#include <immintrin.h>

namespace lockstep::worker::exact_sum_avx2 {
namespace {

// See QuantizeElement in worker/arithmetic/exact_formulas.h.
static inline __m256i Round(__m128 values, __m256d scale, __m256d rounder) {
  const __m256d sum = _mm256_add_pd(_mm256_mul_pd(_mm256_cvtps_pd(values), scale), rounder);
  return _mm256_sub_epi64(_mm256_castpd_si256(sum), _mm256_castpd_si256(rounder));
}

// The same integers as doubles.
static inline __m256d RoundToDouble(__m128 values, __m256d scale, __m256d rounder) {
  return _mm256_sub_pd(_mm256_add_pd(_mm256_mul_pd(_mm256_cvtps_pd(values), scale), rounder), rounder);
}

// Sums of eight values' integers, as doubles.
struct EightSums {
  __m256d low = _mm256_setzero_pd();
  __m256d high = _mm256_setzero_pd();
};

static inline void AddRounded(__m256 values, __m256d scale, __m256d rounder, EightSums& sums) {
  sums.low = _mm256_add_pd(sums.low, RoundToDouble(_mm256_castps256_ps128(values), scale, rounder));
  sums.high = _mm256_add_pd(sums.high, RoundToDouble(_mm256_extractf128_ps(values, 1), scale, rounder));
}

static inline void StoreRounded(const EightSums& sums, __m256d unscale, float* out) {
  _mm_storeu_ps(out, _mm256_cvtpd_ps(_mm256_mul_pd(sums.low, unscale)));
  _mm_storeu_ps(out + 4, _mm256_cvtpd_ps(_mm256_mul_pd(sums.high, unscale)));
}

static inline uint32_t LargestOf(__m256i lanes) {
  __m128i m = _mm_max_epu32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4e));
  m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(m));
}

template <bool kAdd>
static inline uint32_t Quantize(const float* values, int64_t n, double scale_value, int64_t* sums) {
  const __m256d scale = _mm256_set1_pd(scale_value);
  const __m256d rounder = _mm256_set1_pd(6755399441055744.0);
  const __m256i clear_sign = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; i += 8) {
    const __m256 v = _mm256_loadu_ps(values + i);
    largest = _mm256_max_epu32(largest, _mm256_and_si256(_mm256_castps_si256(v), clear_sign));
    __m256i low = Round(_mm256_castps256_ps128(v), scale, rounder);
    __m256i high = Round(_mm256_extractf128_ps(v, 1), scale, rounder);
    __m256i* out = reinterpret_cast<__m256i*>(sums + i);
    if (kAdd) {
      low = _mm256_add_epi64(low, _mm256_loadu_si256(out));
      high = _mm256_add_epi64(high, _mm256_loadu_si256(out + 1));
    }
    _mm256_storeu_si256(out, low);
    _mm256_storeu_si256(out + 1, high);
  }
  return LargestOf(largest);
}

// The double equal to each integer, which has at most 53 significant bits: its two halves are placed into the
// fractions of 2^84 and 2^52 and added, once the offsets are gone.
static inline __m256d ToDouble(__m256i v) {
  const __m256i low_offset = _mm256_set1_epi64x(0x4330000000000000);                    // 2^52
  const __m256i high_offset = _mm256_set1_epi64x(0x4530000080000000);                   // 2^84 + 2^63
  const __m256d offsets = _mm256_castsi256_pd(_mm256_set1_epi64x(0x4530000080100000));  // 2^84 + 2^63 + 2^52
  const __m256i low = _mm256_blend_epi32(low_offset, v, 0x55);
  const __m256i high = _mm256_xor_si256(_mm256_srli_epi64(v, 32), high_offset);
  return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), offsets), _mm256_castsi256_pd(low));
}

// See DequantizeElement in worker/arithmetic/exact_formulas.h.
static inline __m128 Value(__m256i sum, __m256d scale) {
  const __m256i limit = _mm256_set1_epi64x(int64_t{1} << 53);
  const __m256i low_mask = _mm256_set1_epi64x(1023);
  const __m256i sticky_bit = _mm256_set1_epi64x(1024);
  const __m256i wide = _mm256_or_si256(_mm256_cmpgt_epi64(sum, limit),
                                       _mm256_cmpgt_epi64(_mm256_sub_epi64(_mm256_setzero_si256(), limit), sum));
  const __m256i low = _mm256_and_si256(sum, low_mask);
  const __m256i none = _mm256_cmpeq_epi64(low, _mm256_setzero_si256());
  const __m256i sticky = _mm256_or_si256(_mm256_andnot_si256(low_mask, sum), _mm256_andnot_si256(none, sticky_bit));
  const __m256i exact = _mm256_blendv_epi8(sum, sticky, wide);
  return _mm256_cvtpd_ps(_mm256_mul_pd(ToDouble(exact), scale));
}

// Whether a value is so small, but not zero, that quantising rounds bits of it off. `limit`: 2^(exponent + 23), whose
// last bit is worth one unit, as float bits.
static inline __m256i RoundedOff(__m256 values, __m256i limit) {
  const __m256i one = _mm256_set1_epi32(1);
  const __m256i below = _mm256_sub_epi32(_mm256_and_si256(_mm256_castps_si256(values), _mm256_set1_epi32(0x7fffffff)),
                                         one);  // zero goes to the top
  return _mm256_cmpeq_epi32(_mm256_min_epu32(below, _mm256_sub_epi32(limit, _mm256_set1_epi32(2))), below);
}

// Two values that quantising leaves what they are have a sum that one addition of float32 rounds in the same way.
static inline void SumPairs(const float* a, const float* b, int64_t n, double scale_value, double unscale_value,
                            uint32_t limit_bits, float* out) {
  const __m256d scale = _mm256_set1_pd(scale_value), unscale = _mm256_set1_pd(unscale_value);
  const __m256d rounder = _mm256_set1_pd(6755399441055744.0);
  const __m256i limit = _mm256_set1_epi32(static_cast<int>(limit_bits));
  for (int64_t i = 0; i < n; i += 8) {
    const __m256 x = _mm256_loadu_ps(a + i), y = _mm256_loadu_ps(b + i);
    const __m256i rounded_off = _mm256_or_si256(RoundedOff(x, limit), RoundedOff(y, limit));
    if (_mm256_testz_si256(rounded_off, rounded_off)) {
      // The second addition makes a sum of negative zeros what integers make of it.
      _mm256_storeu_ps(out + i, _mm256_add_ps(_mm256_add_ps(x, y), _mm256_setzero_ps()));
      continue;
    }
    EightSums sums;
    AddRounded(x, scale, rounder, sums);
    AddRounded(y, scale, rounder, sums);
    StoreRounded(sums, unscale, out + i);
  }
}

}  // namespace

uint32_t QuantizeStore(const float* values, int64_t n, double scale, int64_t* sums) {
  return Quantize<false>(values, n, scale, sums);
}

uint32_t QuantizeAdd(const float* values, int64_t n, double scale, int64_t* sums) {
  return Quantize<true>(values, n, scale, sums);
}

uint32_t LargestMagnitude(const float* values, int64_t n) {
  const __m256i clear_sign = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; i += 8) {
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
    largest = _mm256_max_epu32(largest, _mm256_and_si256(v, clear_sign));
  }
  return LargestOf(largest);
}

void Dequantize(const int64_t* sums, int64_t n, double scale_value, float* values) {
  const __m256d scale = _mm256_set1_pd(scale_value);
  for (int64_t i = 0; i < n; i += 8) {
    const __m256i* in = reinterpret_cast<const __m256i*>(sums + i);
    _mm_storeu_ps(values + i, Value(_mm256_loadu_si256(in), scale));
    _mm_storeu_ps(values + i + 4, Value(_mm256_loadu_si256(in + 1), scale));
  }
}

void Add(const int64_t* addends, int64_t n, int64_t* sums) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    __m256i* out = reinterpret_cast<__m256i*>(sums + i);
    const __m256i in = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(addends + i));
    _mm256_storeu_si256(out, _mm256_add_epi64(_mm256_loadu_si256(out), in));
  }
  for (; i < n; ++i) sums[i] = static_cast<int64_t>(static_cast<uint64_t>(sums[i]) + static_cast<uint64_t>(addends[i]));
}

void Sum(const float* const* values, size_t value_count, const int64_t* const* integers, size_t integer_count,
         int64_t n, double scale_value, double unscale_value, float* out) {
  const __m256d scale = _mm256_set1_pd(scale_value), unscale = _mm256_set1_pd(unscale_value);
  const __m256d rounder = _mm256_set1_pd(6755399441055744.0);
  for (int64_t i = 0; i < n; i += 4) {
    __m256i sum = _mm256_setzero_si256();
    for (size_t k = 0; k < value_count; ++k) {
      sum = _mm256_add_epi64(sum, Round(_mm_loadu_ps(values[k] + i), scale, rounder));
    }
    for (size_t k = 0; k < integer_count; ++k) {
      sum = _mm256_add_epi64(sum, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(integers[k] + i)));
    }
    _mm_storeu_ps(out + i, Value(sum, unscale));
  }
}

void SumValues(const float* const* values, size_t count, int64_t n, double scale_value, double unscale_value,
               uint32_t limit, float* out) {
  if (count == 2 && limit != 0) return SumPairs(values[0], values[1], n, scale_value, unscale_value, limit, out);
  const __m256d scale = _mm256_set1_pd(scale_value), unscale = _mm256_set1_pd(unscale_value);
  const __m256d rounder = _mm256_set1_pd(6755399441055744.0);
  for (int64_t i = 0; i < n; i += 8) {
    EightSums sums;
    for (size_t k = 0; k < count; ++k) AddRounded(_mm256_loadu_ps(values[k] + i), scale, rounder, sums);
    StoreRounded(sums, unscale, out + i);
  }
}

}  // namespace lockstep::worker::exact_sum_avx2
