// Two sums that are accumulated together.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_PAIR_SUM_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_PAIR_SUM_H_

#include "common/math/host_device.h"

namespace lockstep::device::cuda {

struct Pair {
  double first;
  double second;
};

struct PairSum {
  LS_HD Pair operator()(const Pair& a, const Pair& b) const { return {a.first + b.first, a.second + b.second}; }
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_PAIR_SUM_H_
