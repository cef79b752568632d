// The tangent, the inverse circular functions, the hyperbolic ones and their inverses, and the slopes of the inverses:
// the same bits everywhere, for kernels.
//
// Error of a double below 5 units of the last place, except for Tan close to a pole; NaN outside of a function's
// domain.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_MATH_INVERSE_FORMULA_H_
#define LOCKSTEP_COMMON_MATH_INVERSE_FORMULA_H_

#include <limits>

#include "common/math/host_device.h"
#include "common/math/math.h"
#include "common/math/pairs.h"
#include "common/math/rounding.h"
#include "common/math/trigonometry_formula.h"

namespace lockstep {
namespace math_internal {

// For larger x, 1 is negligible beside x^2, and e^-x beside e^x.
inline constexpr double kLargeArgument = 0x1p28;
inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// For 0 <= x <= 1. With c the multiple of 1/8 next to x, atan(x) = atan(c) + atan(t) for t = (x - c) / (1 + x c), which
// is at most 1/16: its series ends soon.
LS_HD inline Pair AtanUpToOne(double x) {
  // atan(k / 8) in two parts.
  static constexpr double kTable[9][2] = {
      {0x0.0p+0, 0x0.0p+0},
      {0x1.fd5ba9aac2f6ep-4, -0x1.cd37686760c17p-59},
      {0x1.f5b75f92c80ddp-3, 0x1.8ab6e3cf7afbdp-57},
      {0x1.6f61941e4def1p-2, -0x1.c63aae6f6e918p-56},
      {0x1.dac670561bb4fp-2, 0x1.a2b7f222f65e2p-56},
      {0x1.1e00babdefeb4p-1, -0x1.928df287a668fp-58},
      {0x1.4978fa3269ee1p-1, 0x1.2419a87f2a458p-56},
      {0x1.700a7c5784634p-1, -0x1.8c34d25aadef6p-56},
      {0x1.921fb54442d18p-1, 0x1.1a62633145c07p-55},
  };
  const int k = static_cast<int>(x * 8.0 + 0.5);
  const double c = k * 0.125;
  const double t = (x - c) / (1.0 + x * c);
  const double z = t * t;
  double p = -1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / -11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / -7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / -3.0;
  const Pair leading = ExactSum(kTable[k][0], t);
  return {leading.high, leading.low + (kTable[k][1] + t * z * p)};
}

}  // namespace math_internal

LS_HD inline double TanOf(double x) { return x == 0.0 ? x : SinOf(x) / CosOf(x); }

LS_HD inline double AtanOf(double x) {
  const double magnitude = math_internal::Magnitude(x);
  if (!(magnitude > 0.0)) return x;  // zero, NaN
  const bool beyond = magnitude > 1.0;
  const math_internal::Pair atan = math_internal::AtanUpToOne(beyond ? 1.0 / magnitude : magnitude);
  // pi / 2 in two parts.
  const double right = 0x1.921fb54442d18p+0;
  const double value = beyond ? right - (atan.high - (0x1.1a62633145c07p-54 - atan.low)) : atan.high + atan.low;
  return x < 0.0 ? -value : value;
}

LS_HD inline double AsinOf(double x) { return AtanOf(x / SquareRoot((1.0 - x) * (1.0 + x))); }
LS_HD inline double AcosOf(double x) { return 2.0 * AtanOf(SquareRoot((1.0 - x) / (1.0 + x))); }

LS_HD inline double SinhOf(double x) {
  const double magnitude = math_internal::Magnitude(x);
  if (!(magnitude > 0.0)) return x;
  double value = 0.0;
  if (magnitude < 40.0) {
    const double e = math_internal::SmallExpm1(magnitude);
    value = 0.5 * (e + e / (e + 1.0));
  } else {
    const double root = Exp(0.5 * magnitude);
    value = 0.5 * root * root;
  }
  return x < 0.0 ? -value : value;
}

LS_HD inline double CoshOf(double x) {
  const double magnitude = math_internal::Magnitude(x);
  if (magnitude < 40.0) {
    const double e = Exp(magnitude);
    return 0.5 * (e + 1.0 / e);
  }
  const double root = Exp(0.5 * magnitude);
  return 0.5 * root * root;
}

LS_HD inline double AsinhOf(double x) {
  const double magnitude = math_internal::Magnitude(x);
  if (!(magnitude > 0.0)) return x;
  const double square = magnitude * magnitude;
  const double value = magnitude > math_internal::kLargeArgument
                           ? Log(magnitude) + math_internal::kLn2
                           : Log1p(magnitude + square / (1.0 + SquareRoot(1.0 + square)));
  return x < 0.0 ? -value : value;
}

LS_HD inline double AcoshOf(double x) {
  if (x > math_internal::kLargeArgument) return Log(x) + math_internal::kLn2;
  const double t = x - 1.0;
  return t >= 0.0 ? Log1p(t + SquareRoot(2.0 * t + t * t)) : std::numeric_limits<double>::quiet_NaN();
}

LS_HD inline double AtanhOf(double x) {
  const double magnitude = math_internal::Magnitude(x);
  if (!(magnitude > 0.0)) return x;
  if (!(magnitude <= 1.0)) return std::numeric_limits<double>::quiet_NaN();
  const double value = 0.5 * Log1p(2.0 * magnitude / (1.0 - magnitude));
  return x < 0.0 ? -value : value;
}

// Derivatives; infinite at the ends of a domain.
LS_HD inline double AsinSlope(double x) { return 1.0 / SquareRoot((1.0 - x) * (1.0 + x)); }
LS_HD inline double AtanSlope(double x) { return 1.0 / (1.0 + x * x); }
LS_HD inline double AsinhSlope(double x) { return 1.0 / SquareRoot(1.0 + x * x); }
LS_HD inline double AcoshSlope(double x) {
  return x >= 1.0 ? 1.0 / SquareRoot((x - 1.0) * (x + 1.0)) : std::numeric_limits<double>::quiet_NaN();
}
LS_HD inline double AtanhSlope(double x) { return 1.0 / ((1.0 - x) * (1.0 + x)); }

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MATH_INVERSE_FORMULA_H_
