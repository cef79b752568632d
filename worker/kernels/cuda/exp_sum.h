// Sums of e^x in one pass without overflow (online softmax; Milakov and Gimelshein, 2018), for softmax and cross
// entropy.
//
// A sum is stored relative to the largest exponent so far. As in the reference, a row that contains NaN or +infinity,
// or only -infinity, gives NaN.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_EXP_SUM_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_EXP_SUM_H_

#include <limits>

#include "common/math/math.h"

namespace lockstep::device::cuda {

// Represents sum * e^largest.
struct ExpSum {
  float largest;
  float sum;

  LS_HD static ExpSum OfNothing() { return {-std::numeric_limits<float>::infinity(), 0.0f}; }

  // Adds e^x, with one exponential of a non-positive argument.
  LS_HD ExpSum Plus(float x) const {
    if (x == -std::numeric_limits<float>::infinity()) return *this;
    const float distance = x - largest;
    const float e = Exp(distance > 0.0f ? -distance : distance);
    // x - x is 0, or NaN for infinity.
    return x > largest ? ExpSum{x, sum * e + (1.0f + (x - x))} : ExpSum{largest, sum + e};
  }

  // Commutative.
  LS_HD static ExpSum Join(const ExpSum& a, const ExpSum& b) {
    const float largest = a.largest > b.largest ? a.largest : b.largest;
    const float base = largest == -std::numeric_limits<float>::infinity() ? 0.0f : largest;
    return {largest, a.sum * Exp(a.largest - base) + b.sum * Exp(b.largest - base)};
  }
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_EXP_SUM_H_
