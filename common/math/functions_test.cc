// Rounding, powers, sine and cosine, the error function: against libm's long double, and at the limits.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "common/math/erf.h"
#include "common/math/inverse_formula.h"
#include "common/math/power.h"
#include "common/math/rounding.h"
#include "common/math/trigonometry.h"

namespace lockstep {
namespace {

constexpr int kPoints = 100000;

template <typename T>
double Ulps(T got, long double wanted) {
  const T rounded = std::fabs(static_cast<T>(wanted));
  const T ulp = std::nextafter(rounded, std::numeric_limits<T>::infinity()) - rounded;
  return static_cast<double>(std::fabs(wanted - static_cast<long double>(got)) / static_cast<long double>(ulp));
}

// Largest error in units of the last place, over points spread evenly.
template <typename T>
double LargestUlps(T (*ours)(T), long double (*exact)(long double), double from, double to) {
  double worst = 0;
  for (int i = 0; i <= kPoints; ++i) {
    const T x = static_cast<T>(from + (to - from) * i / kPoints);
    worst = std::max(worst, Ulps(ours(x), exact(x)));
  }
  return worst;
}

// Largest absolute error, in epsilons of the type.
template <typename T>
double WorstError(T (*ours)(T), long double (*exact)(long double), double from, double to) {
  long double worst = 0;
  for (int i = 0; i <= kPoints; ++i) {
    const T x = static_cast<T>(from + (to - from) * i / kPoints);
    worst = std::max(worst, std::fabs(exact(x) - static_cast<long double>(ours(x))));
  }
  return static_cast<double>(worst / static_cast<long double>(std::numeric_limits<T>::epsilon()));
}

long double ExactErf(long double x) { return std::erf(x); }
long double ExactErfc(long double x) { return std::erfc(x); }
long double ExactCdf(long double x) { return std::erfc(-x / std::sqrt(2.0L)) / 2; }
long double ExactDensity(long double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0L)); }
long double ExactSin(long double x) { return std::sin(x); }
long double ExactCos(long double x) { return std::cos(x); }

template <typename T>
void CheckErf() {
  CHECK(LargestUlps<T>(Erf<T>, ExactErf, -6, 6) < 4);
  CHECK(LargestUlps<T>(Erf<T>, ExactErf, -1.1, 1.1) < 4);
  CHECK(LargestUlps<T>(Erf<T>, ExactErf, -1e-3, 1e-3) < 4);
  CHECK(WorstError<T>(Erfc<T>, ExactErfc, -30, 30) < 4);
  CHECK(WorstError<T>(Erfc<T>, ExactErfc, -2, 2) < 4);
  CHECK(WorstError<T>(NormalCdf<T>, ExactCdf, -40, 40) < 4);
  CHECK(WorstError<T>(NormalCdf<T>, ExactCdf, -3, 3) < 4);
  CHECK(WorstError<T>(NormalDensity<T>, ExactDensity, -10, 10) < 4);
  const T infinity = std::numeric_limits<T>::infinity();
  CHECK(Erf(infinity) == 1);
  CHECK(Erf(-infinity) == -1);
  CHECK(Erf(T(0)) == 0);
  CHECK(Erfc(infinity) == 0);
  CHECK(Erfc(-infinity) == 2);
  CHECK(NormalCdf(T(0)) == T(0.5));
  CHECK(std::isnan(Erf(std::numeric_limits<T>::quiet_NaN())));
  CHECK(std::isnan(Erfc(std::numeric_limits<T>::quiet_NaN())));
}

TEST_CASE("math: the error function and the normal distribution stay within their errors", "[math]") {
  CheckErf<double>();
  CheckErf<float>();
}

TEST_CASE("math: sine and cosine stay within four units, for small and for very large angles", "[math]") {
  for (const double range : {1e-3, 1.0, 10.0, 1e4, 1e6, 1e9}) {
    CHECK(LargestUlps<double>(Sin, ExactSin, -range, range) < 4);
    CHECK(LargestUlps<double>(Cos, ExactCos, -range, range) < 4);
    CHECK(LargestUlps<float>(Sin, ExactSin, -range, range) < 4);
    CHECK(LargestUlps<float>(Cos, ExactCos, -range, range) < 4);
  }
  // Angles that lie as close to a multiple of pi / 2 as doubles come, and large ones.
  for (const double x : {0x1.921fb54442d18p+0, 0x1.6ac5b262ca1ffp+849, 1e22, 0x1p20, 0x1p54, 0x1p55, 0x1p56, 0x1p300,
                         0x1.fffffffffffffp1023, 0x1.921fb54442d18p+40}) {
    CAPTURE(x);
    CHECK(Ulps(Sin(x), std::sin(static_cast<long double>(x))) < 4);
    CHECK(Ulps(Cos(x), std::cos(static_cast<long double>(x))) < 4);
    CHECK(Sin(-x) == -Sin(x));
    CHECK(Cos(-x) == Cos(x));
  }
  CHECK(std::signbit(Sin(-0.0)));
  CHECK(Cos(0.0) == 1);
  CHECK(std::isnan(Sin(std::numeric_limits<double>::infinity())));
  CHECK(std::isnan(Cos(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("math: tangents, inverse and hyperbolic functions stay within five units", "[math]") {
  using Exact = long double (*)(long double);
  struct Function {
    double (*ours)(double);
    Exact exact;
    double from;
    double to;
  };
  const Function functions[] = {
      {TanOf, [](long double x) { return std::tan(x); }, -100, 100},
      {AsinOf, [](long double x) { return std::asin(x); }, -1, 1},
      {AcosOf, [](long double x) { return std::acos(x); }, -1, 1},
      {AtanOf, [](long double x) { return std::atan(x); }, -1, 1},
      {AtanOf, [](long double x) { return std::atan(x); }, -1e9, 1e9},
      {AtanOf, [](long double x) { return std::atan(x); }, -1e-3, 1e-3},
      {SinhOf, [](long double x) { return std::sinh(x); }, -1, 1},
      {SinhOf, [](long double x) { return std::sinh(x); }, -709, 709},
      {CoshOf, [](long double x) { return std::cosh(x); }, -709, 709},
      {AsinhOf, [](long double x) { return std::asinh(x); }, -1, 1},
      {AsinhOf, [](long double x) { return std::asinh(x); }, -1e12, 1e12},
      {AcoshOf, [](long double x) { return std::acosh(x); }, 1, 2},
      {AcoshOf, [](long double x) { return std::acosh(x); }, 1, 1e12},
      {AtanhOf, [](long double x) { return std::atanh(x); }, -0.999, 0.999},
      {AtanhOf, [](long double x) { return std::atanh(x); }, -1e-3, 1e-3},
  };
  for (const Function& function : functions) {
    CAPTURE(&function - functions, function.from, function.to);
    CHECK(LargestUlps<double>(function.ours, function.exact, function.from, function.to) < 5);
  }
}

TEST_CASE("math: inverse and hyperbolic functions at the ends of their domains", "[math]") {
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(AtanOf(infinity) == std::atan(infinity));
  CHECK(AsinOf(-1.0) == std::asin(-1.0));
  CHECK(AcosOf(-1.0) == std::acos(-1.0));
  CHECK(AcosOf(1.0) == 0.0);
  CHECK(AcoshOf(1.0) == 0.0);
  CHECK(AtanhOf(-1.0) == -infinity);
  CHECK(SinhOf(-1000.0) == -infinity);
  CHECK(CoshOf(-1000.0) == infinity);
  CHECK(AsinhOf(-infinity) == -infinity);
  CHECK(AcoshOf(infinity) == infinity);
  for (double (*const odd)(double) : {TanOf, AsinOf, AtanOf, SinhOf, AsinhOf, AtanhOf}) CHECK(std::signbit(odd(-0.0)));
  for (double (*const bounded)(double) : {AsinOf, AcosOf, AtanhOf, AcoshOf}) CHECK(std::isnan(bounded(-1.5)));
  for (double (*const any)(double) : {TanOf, AsinOf, AcosOf, AtanOf, SinhOf, CoshOf, AsinhOf, AcoshOf, AtanhOf}) {
    CHECK(std::isnan(any(std::numeric_limits<double>::quiet_NaN())));
  }
  CHECK(AsinSlope(0.6) == Approx(1.25));
  CHECK(AtanSlope(2.0) == 0.2);
  CHECK(AsinhSlope(0.75) == 0.8);
  CHECK(AcoshSlope(1.25) == Approx(1 / 0.75));
  CHECK(AtanhSlope(0.5) == Approx(4.0 / 3));
}

TEST_CASE("math: powers stay within four units", "[math]") {
  double worst = 0;
  double worst_float = 0;
  for (int i = 0; i < 400; ++i) {
    const double x = std::exp2(-1000.0 + 2000.0 * i / 399.0) * (1 + i / 1000.0);
    const double near_one = 0.5 + i / 250.0;
    for (int j = 0; j < 400; ++j) {
      const double y = (j - 200) * 3.7301;
      for (const double base : {x, near_one}) {
        const long double wanted = std::pow(static_cast<long double>(base), static_cast<long double>(y));
        if (wanted > 1e-307L && wanted < 1.7e308L) worst = std::max(worst, Ulps(Pow(base, y), wanted));
      }
      const auto base = static_cast<float>(near_one);
      const auto exponent = static_cast<float>(y);
      const long double wanted = std::pow(static_cast<long double>(base), static_cast<long double>(exponent));
      if (wanted > 1e-37L && wanted < 3e38L) worst_float = std::max(worst_float, Ulps(Pow(base, exponent), wanted));
    }
  }
  CHECK(worst < 4);
  CHECK(worst_float < 1);
  CHECK(Pow(-2.0, 3.0) == -8);
  CHECK(Pow(3.0, 2.0) == 9);
  CHECK(Pow(2.0, -1.0) == 0.5);
}

TEST_CASE("math: powers have the special cases of C", "[math]") {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double x : {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e300, 1e-300, infinity, -infinity, nan}) {
    for (const double y :
         {0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 0.5, -0.5, 1e300, -1e300, 0x1p53 + 2, infinity, -infinity, nan}) {
      CAPTURE(x, y);
      const double wanted = std::pow(x, y);
      const double got = Pow(x, y);
      if (std::isnan(wanted)) {
        CHECK(std::isnan(got));
      } else if (std::isfinite(wanted) && wanted != 0) {
        CHECK(Ulps(got, wanted) < 4);
      } else {
        CHECK(got == wanted);
        CHECK(std::signbit(got) == std::signbit(wanted));
      }
    }
  }
}

template <typename T>
void CheckRounding() {
  const T infinity = std::numeric_limits<T>::infinity();
  for (const T x : {T(0), T(-0.0), T(0.5), T(-0.5), T(1.5), T(2.5), T(-2.5), T(0.49999997), T(3.7), T(-3.2),
                    T(8388607.5), T(-8388609), T(1e30), infinity, -infinity}) {
    CAPTURE(x);
    for (const auto& [got, wanted] : {std::pair(RoundEven(x), std::nearbyint(x)), std::pair(Floor(x), std::floor(x)),
                                      std::pair(Ceil(x), std::ceil(x)), std::pair(Truncate(x), std::trunc(x))}) {
      CHECK(got == wanted);
      CHECK(std::signbit(got) == std::signbit(wanted));
    }
    for (const T y : {T(1), T(-0.3), T(7), T(1e-10), infinity, T(0)}) {
      const T wanted = std::fmod(x, y);
      CHECK((std::isnan(wanted) ? std::isnan(Remainder(x, y)) : Remainder(x, y) == wanted));
    }
  }
  CHECK(std::isnan(RoundEven(std::numeric_limits<T>::quiet_NaN())));
  CHECK(std::isnan(Floor(std::numeric_limits<T>::quiet_NaN())));
  CHECK(std::isnan(Remainder(std::numeric_limits<T>::quiet_NaN(), T(2))));
}

TEST_CASE("math: rounding and remainders are exact", "[math]") {
  CheckRounding<double>();
  CheckRounding<float>();
}

}  // namespace
}  // namespace lockstep
