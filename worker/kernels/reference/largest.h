// The largest score of a row, which softmax and log-sum-exp reductions subtract before exponentiation.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_REFERENCE_LARGEST_H_
#define LOCKSTEP_WORKER_KERNELS_REFERENCE_LARGEST_H_

#include <cstdint>
#include <limits>

namespace lockstep::device::reference {

// The largest of n values that are `stride` apart; NaN if one of them is NaN.
template <typename T>
double Largest(const T* x, int64_t n, int64_t stride) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    const double value = x[i * stride];
    if (value > largest || value != value) largest = value;
    if (value != value) break;
  }
  return largest;
}

}  // namespace lockstep::device::reference

#endif  // LOCKSTEP_WORKER_KERNELS_REFERENCE_LARGEST_H_
