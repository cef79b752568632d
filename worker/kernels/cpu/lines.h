// Loops over the lines along an axis, split over threads.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_LINES_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_LINES_H_

#include <algorithm>
#include <cstdint>

#include "worker/kernels/axis_shapes.h"
#include "worker/kernels/cpu/code.h"
#include "worker/kernels/cpu/parallel.h"

namespace lockstep::device::cpu::LS_CODE {

// The grain of ParallelFor over rows or lines of `elements` elements each.
[[gnu::always_inline]] inline int64_t GrainOf(int64_t elements) {
  constexpr int64_t kElements = 16384;
  return std::max<int64_t>(1, kElements / std::max<int64_t>(1, elements));
}

// Calls body(offset, first, count) for groups of up to `most` adjacent lines: `first` is the number of the first line,
// `offset` that of its first element, `count` the number of lines.
template <typename Body>
[[gnu::always_inline]] inline void ForLines(const AxisExtents& e, int64_t most, const Body& body) {
  const int64_t blocks = (e.inner + most - 1) / most;
  ParallelFor(e.outer * blocks, GrainOf(e.extent * std::min(most, e.inner)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % blocks * most;
      body(i / blocks * e.extent * e.inner + first, i / blocks * e.inner + first, std::min(most, e.inner - first));
    }
  });
}

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_LINES_H_
