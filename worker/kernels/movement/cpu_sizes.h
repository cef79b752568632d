// Shared by CPU kernels that move elements: dispatch on the size of elements instead of their type.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_MOVEMENT_CPU_SIZES_H_
#define LOCKSTEP_WORKER_KERNELS_MOVEMENT_CPU_SIZES_H_

#include <cstdint>

#include "worker/device/host_kernel.h"
#include "worker/kernels/cpu/code.h"
#include "worker/kernels/cpu/lines.h"

namespace lockstep::device::cpu::LS_CODE {

inline constexpr int64_t kMovementGrain = 16384;  // elements

// Returns make.operator()<T>(), where T is the unsigned integer of the elements' size.
template <typename Make>
[[gnu::always_inline]] inline HostFunction ForSize(DType dtype, const Make& make) {
  switch (DTypeSize(dtype)) {
    case 1:
      return make.template operator()<uint8_t>();
    case 2:
      return make.template operator()<uint16_t>();
    case 4:
      return make.template operator()<uint32_t>();
    default:
      return make.template operator()<uint64_t>();
  }
}

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_MOVEMENT_CPU_SIZES_H_
