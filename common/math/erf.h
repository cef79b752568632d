// The error function and the normal distribution, under the rules of math.h: the same bits everywhere, free of
// branches, so that loops over them become vector code.
//
//   |x| < 1:   erf(x) = x P(x^2)
//   |x| >= 1:  erf(x) = 1 - e^(-x^2) Q(u) for x > 0, u linear in 1 / (x + c)
//
// P and Q interpolate the functions they stand for at the zeros of a Chebyshev polynomial, computed with 60 digits;
// they differ from them by less than 2^-60 of their value in double and 2^-28 in float.
//
// Errors: Erf below 4 units of the last place; Erfc and NormalCdf below 4 epsilon (absolute), since what is close to
// zero comes as e^(-x^2) with a rounded square. NaN gives NaN.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_MATH_ERF_H_
#define LOCKSTEP_COMMON_MATH_ERF_H_

#include <array>
#include <cstddef>

#include "common/math/math.h"
#include "common/math/rounding.h"

namespace lockstep {
namespace math_internal {

template <typename T>
struct ErfTerms;

template <>
struct ErfTerms<float> {
  LS_HD static constexpr auto Near() {
    return std::to_array<float>({0x1.20dd74p+0f, -0x1.81273ep-2f, 0x1.ce2d10p-4f, -0x1.b7fabap-6f, 0x1.541270p-8f,
                                 -0x1.a45088p-11f, 0x1.4a5690p-14f});
  }
  LS_HD static constexpr auto Far() {
    return std::to_array<float>({0x1.863e7ep-3f, 0x1.69981ep-3f, 0x1.9ff444p-5f, 0x1.31c4c8p-7f, 0x1.28c59cp-11f,
                                 -0x1.6f628ap-13f, -0x1.ed8806p-16f, 0x1.828054p-18f, 0x1.2c9526p-20f,
                                 -0x1.25f6d8p-22f});
  }
  static constexpr float kShift = 2.0f;
  static constexpr float kScale = 8.0f;
  static constexpr float kOffset = 0x1.aaaaaap+0f;
};

template <>
struct ErfTerms<double> {
  LS_HD static constexpr auto Near() {
    return std::to_array<double>(
        {0x1.20dd750429b6dp+0, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b30p-4, -0x1.b82ce31284e00p-6, 0x1.565bcd0dbaa38p-8,
         -0x1.c02db3dac435fp-11, 0x1.f9a321d5b8e1ep-14, -0x1.f4d1e3183f7aep-17, 0x1.b9df224ca4b97p-20,
         -0x1.5f1ecb6f0764cp-23, 0x1.f7b4bf3b13964p-27, -0x1.389d4f2641625p-30, 0x1.05ffd737fb32ep-34});
  }
  LS_HD static constexpr auto Far() {
    return std::to_array<double>(
        {0x1.14b9d0ba4426fp-3,   0x1.5c7a6c6688fd3p-3,   0x1.43814b767d052p-4,  0x1.f951794b5b040p-6,
         0x1.40fb57919b804p-7,   0x1.3519d830bc56ap-9,   0x1.7025ad03d43b4p-12, -0x1.517b4e18784cbp-19,
         -0x1.009eb9b80069dp-16, -0x1.4ece9118273f2p-19, 0x1.e576a7ae57f9fp-22, 0x1.a1ddf59608a26p-23,
         -0x1.7806ded152ff7p-27, -0x1.d300a55ef02aep-27, 0x1.e5ba8e70abccdp-33, 0x1.16c11b1b31e85p-30,
         -0x1.3ab9b264691fcp-36, -0x1.684771021f251p-34, 0x1.0a330c41a03e2p-38, 0x1.cf2ce62dea63dp-38,
         -0x1.c40670a803c85p-42, -0x1.b246ea5717d74p-42});
  }
  static constexpr double kShift = 3.0;
  static constexpr double kScale = 0x1.2762762762762p+3;
  static constexpr double kOffset = 0x1.4ec4ec4ec4ec5p+0;
};

// terms[0] + terms[1] x + ... by Horner's rule.
template <size_t kFirst = 0, typename T, size_t kCount>
[[gnu::always_inline]] LS_HD inline T Polynomial(const std::array<T, kCount>& terms, T x) {
  if constexpr (kFirst + 1 == kCount) {
    return terms[kFirst];
  } else {
    return Polynomial<kFirst + 1>(terms, x) * x + terms[kFirst];
  }
}

// |x| P(x^2), which is erf(|x|) where |x| < 1.
template <typename T>
[[gnu::always_inline]] LS_HD inline T ErfNear(T magnitude) {
  constexpr auto terms = ErfTerms<T>::Near();
  return magnitude * Polynomial(terms, magnitude * magnitude);
}

// e^(-x^2) Q(u), which is 1 - erf(|x|) where |x| >= 1.
template <typename T>
[[gnu::always_inline]] LS_HD inline T ErfFar(T magnitude) {
  using Terms = ErfTerms<T>;
  constexpr auto terms = Terms::Far();
  const T u = Terms::kScale / (magnitude + Terms::kShift) - Terms::kOffset;
  return Exp(-magnitude * magnitude) * Polynomial(terms, u);
}

}  // namespace math_internal

// 2 / sqrt(pi) times the integral of e^(-t^2) over t from 0 to x.
template <typename T>
[[gnu::always_inline]] LS_HD inline T Erf(T x) {
  const T magnitude = CopySign(x, T(1));
  const T near = math_internal::ErfNear(magnitude);
  const T far = T(1) - math_internal::ErfFar(magnitude);
  return CopySign(magnitude < T(1) ? near : far, x);
}

// 1 - erf(x).
template <typename T>
[[gnu::always_inline]] LS_HD inline T Erfc(T x) {
  const T magnitude = CopySign(x, T(1));
  const T near = T(1) - CopySign(math_internal::ErfNear(magnitude), x);
  // erfc(-x) = 2 - erfc(x).
  const T far = (T(1) - CopySign(T(1), x)) + CopySign(math_internal::ErfFar(magnitude), x);
  return magnitude < T(1) ? near : far;
}

// The probability that a normally distributed number is below x.
template <typename T>
[[gnu::always_inline]] LS_HD inline T NormalCdf(T x) {
  return T(0.5) * Erfc(x * T(-0x1.6a09e667f3bcdp-1));
}

// The density of the normal distribution.
template <typename T>
[[gnu::always_inline]] LS_HD inline T NormalDensity(T x) {
  return T(0x1.9884533d43651p-2) * Exp(T(-0.5) * x * x);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_MATH_ERF_H_
