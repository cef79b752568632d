// Numbers of about twice the precision of double, as unevaluated sums of two doubles. Exact where the functions say so.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_MATH_PAIRS_H_
#define LOCKSTEP_COMMON_MATH_PAIRS_H_

#include "common/math/host_device.h"

namespace lockstep::math_internal {

// high + low, where low is below half a unit of high's last place.
struct Pair {
  double high;
  double low;
};

// a + b, exactly (Knuth).
[[gnu::always_inline]] LS_HD inline Pair ExactSum(double a, double b) {
  const double sum = a + b;
  const double from_b = sum - a;
  return {sum, (a - (sum - from_b)) + (b - from_b)};
}

// a * b, exactly (Dekker, Veltkamp). REQUIRES: the magnitudes and their product are below 2^990, and the product is not
// so small that its low part would be denormal.
[[gnu::always_inline]] LS_HD inline Pair ExactProduct(double a, double b) {
  constexpr double kSplit = 0x1p27 + 1;
  const double a_scaled = a * kSplit;
  const double a_high = a_scaled - (a_scaled - a);
  const double a_low = a - a_high;
  const double b_scaled = b * kSplit;
  const double b_high = b_scaled - (b_scaled - b);
  const double b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

// a * b with some 100 bits.
[[gnu::always_inline]] LS_HD inline Pair Product(Pair a, Pair b) {
  const Pair product = ExactProduct(a.high, b.high);
  return ExactSum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

}  // namespace lockstep::math_internal

#endif  // LOCKSTEP_COMMON_MATH_PAIRS_H_
