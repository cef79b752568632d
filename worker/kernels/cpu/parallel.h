// Splits independent work over the owner's OpenMP threads. Results must not depend on where the parts begin.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_PARALLEL_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_PARALLEL_H_

#include <omp.h>

#include <algorithm>
#include <cstdint>

#include "worker/kernels/cpu/code.h"

namespace lockstep::device::cpu::LS_CODE {

// Calls body(begin, end) for parts that cover [0, count). Parts have at least `grain` elements (unless count is
// smaller), since starting a thread for fewer costs more than it saves. Blocks until all are done.
template <typename Body>
void ParallelFor(int64_t count, int64_t grain, const Body& body) {
  const int64_t parts = std::min<int64_t>(omp_get_max_threads(), std::max<int64_t>(1, count / grain));
  if (parts <= 1) {
    body(int64_t{0}, count);
    return;
  }
#pragma omp parallel for schedule(static) num_threads(static_cast <int>(parts))
  for (int64_t part = 0; part < parts; ++part) body(count * part / parts, count * (part + 1) / parts);
}

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_PARALLEL_H_
