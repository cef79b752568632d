// Loops for ops whose operands broadcast. Adjacent dimensions along which each operand is contiguous or constant are
// merged, and the offset of a row is derived from the previous row's, so that elements need no division.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_ARITHMETIC_CPU_LOOPS_H_
#define LOCKSTEP_WORKER_KERNELS_ARITHMETIC_CPU_LOOPS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "common/tensor/shape.h"
#include "worker/device/host_kernel.h"
#include "worker/kernels/cpu/parallel.h"

namespace lockstep::device::cpu::LS_CODE {

template <size_t kOperands>
class BroadcastLoops {
 public:
  using Offsets = std::array<int64_t, kOperands>;

  // REQUIRES: every shape broadcasts to `to`.
  [[gnu::always_inline]] BroadcastLoops(const Shape& to, const std::array<const Shape*, kOperands>& from) {
    Offsets size;  // elements of the dimensions behind this one, per operand
    size.fill(1);
    for (size_t i = 1; i <= to.size(); ++i) {  // from the last dimension to the first
      const int64_t extent = to[to.size() - i];
      if (extent == 1) continue;
      Offsets stride;
      for (size_t o = 0; o < kOperands; ++o) {
        const bool varies = i <= from[o]->size() && (*from[o])[from[o]->size() - i] != 1;
        stride[o] = varies ? size[o] : 0;
        if (varies) size[o] *= extent;
      }
      Add(extent, stride);
    }
  }

  // False: too many dimensions after merging.
  [[gnu::always_inline]] bool fits() const { return dims_ <= kMostDims; }
  // Whether operand o varies along the innermost dimension; otherwise it is constant within a row.
  [[gnu::always_inline]] bool varies(size_t o) const { return dims_ == 0 || stride_[0][o] != 0; }

  // Calls row(y, offsets, count) for parts of rows: `count` elements of the result from element `y` on; `offsets` are
  // those of the operands' first elements. Splits the work over threads, which does not change results.
  template <typename Row>
  void Run(int64_t grain, const Row& row) const {
    const int64_t width = dims_ == 0 ? 1 : extent_[0];
    int64_t rows = 1;
    for (size_t d = 1; d < dims_; ++d) rows *= extent_[d];
    if (rows < kFewRows) {
      for (int64_t r = 0; r < rows; ++r) {
        const Cursor cursor(*this, r);
        ParallelFor(width, grain, [&](int64_t begin, int64_t end) {
          Offsets at = cursor.offsets;
          for (size_t o = 0; o < kOperands; ++o) at[o] += varies(o) ? begin : 0;
          row(r * width + begin, at, end - begin);
        });
      }
      return;
    }
    ParallelFor(rows, std::max<int64_t>(1, grain / width), [&](int64_t begin, int64_t end) {
      Cursor cursor(*this, begin);
      for (int64_t r = begin; r < end; ++r) {
        row(r * width, cursor.offsets, width);
        cursor.Advance(*this);
      }
    });
  }

 private:
  static constexpr size_t kMostDims = 6;
  static constexpr int64_t kFewRows = 8;

  [[gnu::always_inline]] void Add(int64_t extent, const Offsets& stride) {
    if (dims_ > 0 && dims_ <= kMostDims) {
      // Merge with the dimension behind it if every operand is contiguous over both, or constant in both.
      bool same = true;
      for (size_t o = 0; o < kOperands; ++o) same = same && stride[o] == stride_[dims_ - 1][o] * extent_[dims_ - 1];
      if (same) {
        extent_[dims_ - 1] *= extent;
        return;
      }
    }
    if (dims_ < kMostDims) {
      extent_[dims_] = extent;
      stride_[dims_] = stride;
    }
    ++dims_;
  }

  // The coordinates of a row and the operands' offsets at it.
  struct Cursor {
    [[gnu::always_inline]] Cursor(const BroadcastLoops& loops, int64_t row) {
      offsets.fill(0);
      for (size_t d = 1; d < loops.dims_; ++d) {
        at[d] = row % loops.extent_[d];
        row /= loops.extent_[d];
        for (size_t o = 0; o < kOperands; ++o) offsets[o] += at[d] * loops.stride_[d][o];
      }
    }
    [[gnu::always_inline]] void Advance(const BroadcastLoops& loops) {
      for (size_t d = 1; d < loops.dims_; ++d) {
        for (size_t o = 0; o < kOperands; ++o) offsets[o] += loops.stride_[d][o];
        if (++at[d] < loops.extent_[d]) return;
        for (size_t o = 0; o < kOperands; ++o) offsets[o] -= loops.extent_[d] * loops.stride_[d][o];
        at[d] = 0;
      }
    }
    std::array<int64_t, kMostDims> at;
    Offsets offsets;
  };

  size_t dims_ = 0;  // after merging; the arrays are indexed from the innermost
  std::array<int64_t, kMostDims> extent_;
  std::array<Offsets, kMostDims> stride_;
};

// y = op(a, b) for inputs 0 and 1. REQUIRES: BroadcastLoops of their shapes fits().
template <typename T, typename Result, typename Op>
void BroadcastPairs(const HostCall& call, int64_t grain, const Op& op) {
  const T* a = call.in<T>(0);
  const T* b = call.in<T>(1);
  Result* y = call.out<Result>(0);
  const BroadcastLoops<2> loops(call.out_shape(0), {&call.in_shape(0), &call.in_shape(1)});
  loops.Run(grain, [&](int64_t at, const std::array<int64_t, 2>& from, int64_t count) {
    const T* p = a + from[0];
    const T* q = b + from[1];
    Result* r = y + at;
    if (!loops.varies(1)) {
      const T value = *q;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) r[i] = op(p[i], value);
    } else if (!loops.varies(0)) {
      const T value = *p;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) r[i] = op(value, q[i]);
    } else {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) r[i] = op(p[i], q[i]);
    }
  });
}

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_ARITHMETIC_CPU_LOOPS_H_
