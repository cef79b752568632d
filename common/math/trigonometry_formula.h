// The formulas of Sin and Cos (trigonometry.h), for kernels.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_MATH_TRIGONOMETRY_FORMULA_H_
#define LOCKSTEP_COMMON_MATH_TRIGONOMETRY_FORMULA_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/math/host_device.h"
#include "common/math/pairs.h"
#include "common/math/rounding.h"

namespace lockstep {
namespace math_internal {

// An angle less a multiple of pi / 2: in [-pi / 4, pi / 4], but for rounding.
struct ReducedAngle {
  Pair rest;
  int quadrant;  // 0 to 3
};

// For |x| < 2^20: pi / 2 in three parts, of which the first two have 33 bits, so that multiples of them are exact.
LS_HD inline ReducedAngle ReduceSmall(double x) {
  const double k = RoundEven(x * 0x1.45f306dc9c883p-1);
  const double first = x - k * 0x1.921fb54400000p+0;
  const Pair second = ExactSum(first, -(k * 0x1.0b4611a600000p-34));
  const Pair rest = ExactSum(second.high, second.low - k * 0x1.3198a2e037073p-69);
  return {rest, static_cast<int>(static_cast<int64_t>(k) & 3)};
}

// For x >= 2^20 (Payne and Hanek): x = m 2^e with whole m. Of x * 2 / pi only what counts modulo 4 is computed: m times
// 192 bits of 2 / pi, from the one of weight 2^(1 - e) on, modulo 2^192. The upper two bits are the quadrant.
LS_HD inline ReducedAngle ReduceLarge(double x) {
  // 64 zeros, then the bits of 2 / pi behind the point.
  static constexpr uint64_t kTwoOverPi[] = {
      0,
      0xa2f9836e4e441529,
      0xfc2757d1f534ddc0,
      0xdb6295993c439041,
      0xfe5163abdebbc561,
      0xb7246e3a424dd2e0,
      0x06492eea09d1921c,
      0xfe1deb1cb129a73e,
      0xe88235f52ebb4484,
      0xe99c7026b45f7e41,
      0x3991d639835339f4,
      0x9c845f8bbdf9283b,
      0x1ff897ffde05980f,
      0xef2f118b5a0a6d1f,
      0x6d367ecf27cb09b7,
      0x4f463f669e5fea2d,
      0x7527bac7ebe5f17b,
      0x3d0739f78a5292ea,
      0x6bfb5fb11f8d5d08,
      0x56033046fc7b6bab,
      0xf0cfbc209af4361d,
  };
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t m = (bits & ((uint64_t{1} << 52) - 1)) | (uint64_t{1} << 52);
  const int e = static_cast<int>(bits >> 52) - 1075;
  const int offset = 64 + e - 2;  // of the first bit, in the table
  const auto word = static_cast<size_t>(offset / 64);
  const int shift = offset % 64;
  uint64_t window[3];
  for (size_t i = 0; i < 3; ++i) {
    const uint64_t* at = kTwoOverPi + word + i;
    window[i] = shift == 0 ? at[0] : (at[0] << shift) | (at[1] >> (64 - shift));
  }
  uint64_t product[3];
  unsigned __int128 carry = 0;
  for (size_t i = 3; i-- > 0;) {
    carry += static_cast<unsigned __int128>(window[i]) * m;
    product[i] = static_cast<uint64_t>(carry);
    carry >>= 64;
  }
  int quadrant = static_cast<int>(product[0] >> 62);
  // The fraction, 190 bits; from one half on it is taken below the next quadrant.
  const bool above = ((product[0] >> 61) & 1) != 0;
  if (above) {
    quadrant = (quadrant + 1) & 3;
    unsigned __int128 borrow = 1;
    for (size_t i = 3; i-- > 0;) {
      borrow += ~product[i];
      product[i] = static_cast<uint64_t>(borrow);
      borrow >>= 64;
    }
  }
  product[0] &= (uint64_t{1} << 62) - 1;
  Pair fraction = {0, 0};
  double weight = 0x1p-30;
  for (int half = 0; half < 6; ++half) {
    const uint64_t part = product[half / 2];
    const uint64_t digits = half % 2 == 0 ? part >> 32 : part & 0xffffffff;
    const Pair sum = ExactSum(fraction.high, static_cast<double>(digits) * weight);
    fraction = ExactSum(sum.high, fraction.low + sum.low);
    weight *= 0x1p-32;
  }
  if (above) fraction = {-fraction.high, -fraction.low};
  return {Product(fraction, {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54}), quadrant};
}

// REQUIRES: x is finite.
LS_HD inline ReducedAngle ReduceAngle(double x) {
  const double magnitude = CopySign(x, 1.0);
  if (magnitude < 0x1p20) return ReduceSmall(x);
  const ReducedAngle reduced = ReduceLarge(magnitude);
  if (x > 0) return reduced;
  return {{-reduced.rest.high, -reduced.rest.low}, (4 - reduced.quadrant) & 3};
}

// Taylor's series; what is left out is below 2^-60 for |r| <= 0.79.
LS_HD inline double SinNear(Pair r) {
  const double z = r.high * r.high;
  double p = 1.0 / 355687428096000.0;
  p = p * z + 1.0 / -1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z + 1.0 / -39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z + 1.0 / -5040.0;
  p = p * z + 1.0 / 120.0;
  p = p * z + 1.0 / -6.0;
  // sin(a + b) = sin(a) + b cos(a); two terms of the cosine suffice.
  return r.high + (r.high * z * p + r.low * (1.0 - 0.5 * z));
}

LS_HD inline double CosNear(Pair r) {
  const double z = r.high * r.high;
  double p = 1.0 / 20922789888000.0;
  p = p * z + 1.0 / -87178291200.0;
  p = p * z + 1.0 / 479001600.0;
  p = p * z + 1.0 / -3628800.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z + 1.0 / -720.0;
  p = p * z + 1.0 / 24.0;
  const Pair leading = ExactSum(1.0, -0.5 * z);
  return leading.high + (leading.low + (z * z * p - r.high * r.low));
}

LS_HD inline double AtQuadrant(const ReducedAngle& reduced, int ahead) {
  const int quadrant = (reduced.quadrant + ahead) & 3;
  const double value = quadrant % 2 == 0 ? SinNear(reduced.rest) : CosNear(reduced.rest);
  return quadrant < 2 ? value : -value;
}

LS_HD inline bool IsFinite(double x) { return x - x == 0.0; }

}  // namespace math_internal

// Sine and cosine: see trigonometry.h.
LS_HD inline double SinOf(double x) {
  if (x == 0.0) return x;
  return math_internal::IsFinite(x) ? math_internal::AtQuadrant(math_internal::ReduceAngle(x), 0)
                                    : std::numeric_limits<double>::quiet_NaN();
}
LS_HD inline double CosOf(double x) {
  return math_internal::IsFinite(x) ? math_internal::AtQuadrant(math_internal::ReduceAngle(x), 1)
                                    : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MATH_TRIGONOMETRY_FORMULA_H_
