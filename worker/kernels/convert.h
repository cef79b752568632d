// Converts one element between types: the semantics of the op Cast.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CONVERT_H_
#define LOCKSTEP_WORKER_KERNELS_CONVERT_H_

#include <limits>
#include <type_traits>

#include "common/math/host_device.h"
#include "common/tensor/bf16.h"

namespace lockstep::device {

// Floating point to integers truncates towards zero and saturates; NaN becomes 0. BF16 is converted by way of F32.
template <typename From, typename To>
LS_HD inline To Convert(From x) {
  if constexpr (std::is_same_v<From, Bf16>) {
    return Convert<float, To>(x);
  } else if constexpr (std::is_same_v<To, Bf16>) {
    return Bf16(Convert<From, float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr To kLowest = std::numeric_limits<To>::min();
    constexpr To kMost = std::numeric_limits<To>::max();
    if (x != x) return To(0);
    // As a From the largest integer may round up to a value that does not fit; such values must not be cast.
    if (x <= static_cast<From>(kLowest)) return kLowest;
    if (x >= static_cast<From>(kMost)) return kMost;
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_CONVERT_H_
