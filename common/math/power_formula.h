// The formula of Pow (power.h), for kernels and other code that inlines it into loops.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_MATH_POWER_FORMULA_H_
#define LOCKSTEP_COMMON_MATH_POWER_FORMULA_H_

#include <bit>
#include <cstdint>
#include <limits>

#include "common/math/host_device.h"
#include "common/math/math.h"
#include "common/math/pairs.h"
#include "common/math/rounding.h"

namespace lockstep {
namespace math_internal {

// atanh(s) / s without its first two terms, over s^4, with z = s^2.
[[gnu::always_inline]] LS_HD inline double AtanhRest(double z) {
  double rest = 1.0 / 25.0;
  rest = rest * z + 1.0 / 23.0;
  rest = rest * z + 1.0 / 21.0;
  rest = rest * z + 1.0 / 19.0;
  rest = rest * z + 1.0 / 17.0;
  rest = rest * z + 1.0 / 15.0;
  rest = rest * z + 1.0 / 13.0;
  rest = rest * z + 1.0 / 11.0;
  rest = rest * z + 1.0 / 9.0;
  rest = rest * z + 1.0 / 7.0;
  return rest * z + 1.0 / 5.0;
}

// log(x) with some 66 bits, for finite x that is not denormal: x = m 2^k with m in [sqrt(1/2), sqrt(2)), and
// log(m) = 2 atanh(s) with s = (m - 1) / (m + 1), of whose series the first two terms are pairs.
[[gnu::always_inline]] LS_HD inline Pair LogPair(double x) {
  constexpr uint64_t kRootHalf = std::bit_cast<uint64_t>(0x1.6a09e667f3bcdp-1);
  constexpr uint64_t kBias = 1024;  // so that no step is signed, for processors that have no such steps for vectors
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t k = (bits - kRootHalf + (kBias << 52)) >> 52;
  const double m = std::bit_cast<double>(bits - (k << 52) + (kBias << 52));

  const double f = m - 1.0;
  const Pair d = ExactSum(m, 1.0);
  const double s_high = f / d.high;
  const Pair back = ExactProduct(s_high, d.high);
  const Pair s = {s_high, (((f - back.high) - back.low) - s_high * d.low) / d.high};
  const Pair z = Product(s, s);
  const Pair third = Product(Product(s, z), {0x1.5555555555555p-2, 0x1.5555555555555p-56});
  const double rest = AtanhRest(z.high) * (s.high * z.high * z.high);

  constexpr uint64_t kWhole = std::bit_cast<uint64_t>(0x1p52);
  const double exponent = std::bit_cast<double>(kWhole | k) - (0x1p52 + static_cast<double>(kBias));
  // ln 2 in two parts; the first has 21 trailing zero bits.
  const Pair first = ExactSum(exponent * 0x1.62e42fee00000p-1, 2.0 * s.high);
  const Pair second = ExactSum(first.high, exponent * 0x1.a39ef35793c76p-33);
  const Pair with_third = ExactSum(second.high, 2.0 * third.high);
  const double low = first.low + second.low + with_third.low + 2.0 * (s.low + third.low + rest);
  return ExactSum(with_third.high, low);
}

// x^y for positive finite x that is not denormal, and finite y; without branches, so that loops become vector code.
[[gnu::always_inline]] LS_HD inline double PlainPow(double x, double y) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Pair log = LogPair(x);
  const double rough = log.high * y;
  const Pair product = ExactProduct(log.high, y);
  const Pair exponent = ExactSum(product.high, product.low + log.low * y);
  const double power = Exp(exponent.high);
  double result = power > std::numeric_limits<double>::max() ? power : power + power * exponent.low;
  result = rough > 800.0 ? kInfinity : result;
  return rough < -800.0 ? 0.0 : result;
}

// x^y for positive finite x.
[[gnu::always_inline]] LS_HD inline double PositivePow(double x, double y) {
  if (x < std::numeric_limits<double>::min()) return y > 0 ? 0.0 : std::numeric_limits<double>::infinity();
  return PlainPow(x, y);
}

}  // namespace math_internal

// x to the power of y: see power.h.
[[gnu::always_inline]] LS_HD inline double PowOf(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x != x || y != y) return std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double magnitude = CopySign(x, 1.0);
  const bool whole = Truncate(y) == y;
  const bool odd = whole && Truncate(y * 0.5) != y * 0.5;
  double result;
  if (y == kInfinity || y == -kInfinity) {
    result = magnitude == 1.0 ? 1.0 : (magnitude > 1.0) == (y > 0) ? kInfinity : 0.0;
  } else if (magnitude == 0.0 || magnitude == kInfinity) {
    result = (magnitude == 0.0) == (y > 0) ? 0.0 : kInfinity;
  } else {
    if (x < 0 && !whole) return std::numeric_limits<double>::quiet_NaN();
    result = math_internal::PositivePow(magnitude, y);
  }
  return odd ? CopySign(result, x) : result;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MATH_POWER_FORMULA_H_
