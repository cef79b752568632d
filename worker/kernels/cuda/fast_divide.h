// Division by a divisor that is known at the launch of a kernel but not at compile time: a multiplication and a shift
// instead of some thirty instructions. Granlund and Montgomery, "Division by invariant integers using multiplication"
// (1994).
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_FAST_DIVIDE_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_FAST_DIVIDE_H_

#include <cstdint>

#include "common/math/host_device.h"

namespace lockstep::device::cuda {

// Divides numbers in [0, 2^31).
class FastDivide {
 public:
  // The largest dividend and divisor.
  static constexpr int64_t kMost = (int64_t{1} << 31) - 1;

  FastDivide() = default;
  // REQUIRES: 1 <= divisor <= kMost.
  explicit FastDivide(int64_t divisor) : divisor_(static_cast<uint32_t>(divisor)) {
    while ((uint64_t{1} << shift_) < divisor_) ++shift_;
    factor_ = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift_) - divisor_)) / divisor_ + 1);
  }

  LS_HD uint32_t divisor() const { return divisor_; }
  LS_HD uint32_t Quotient(uint32_t x) const {
    return (static_cast<uint32_t>((uint64_t{x} * factor_) >> 32) + x) >> shift_;
  }
  // Replaces *x by the quotient and returns the remainder: splits the innermost coordinate off a flat index.
  LS_HD uint32_t Split(uint32_t* x) const {
    const uint32_t quotient = Quotient(*x);
    const uint32_t remainder = *x - quotient * divisor_;
    *x = quotient;
    return remainder;
  }

 private:
  uint32_t divisor_ = 1;
  uint32_t factor_ = 1;
  uint32_t shift_ = 0;
};

// Divides 64-bit numbers: by FastDivide when dividend and divisor are below 2^31, else by the hardware.
class WideDivide {
 public:
  WideDivide() = default;
  // REQUIRES: divisor >= 1.
  explicit WideDivide(int64_t divisor)
      : divisor_(divisor), fast_(divisor <= FastDivide::kMost ? divisor : FastDivide::kMost) {}

  LS_HD int64_t divisor() const { return divisor_; }
  // REQUIRES: x >= 0.
  LS_HD int64_t Quotient(int64_t x) const {
    return (x | divisor_) <= FastDivide::kMost ? fast_.Quotient(static_cast<uint32_t>(x)) : x / divisor_;
  }
  // As FastDivide::Split.
  LS_HD int64_t Split(int64_t* x) const {
    const int64_t quotient = Quotient(*x);
    const int64_t remainder = *x - quotient * divisor_;
    *x = quotient;
    return remainder;
  }

 private:
  int64_t divisor_ = 1;
  FastDivide fast_;
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_FAST_DIVIDE_H_
