// Dispatch from a DType to the C++ type with which a reference kernel computes.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_REFERENCE_ELEMENT_TYPES_H_
#define LOCKSTEP_WORKER_KERNELS_REFERENCE_ELEMENT_TYPES_H_

#include <cstdint>

#include "common/tensor/dtype.h"
#include "worker/device/host_kernel.h"

namespace lockstep::device::reference {

// Returns make.operator()<T>() for the C++ type of F32, F64, I64, I32, I8 or U8; null for other types.
template <typename Make>
HostFunction ForNumber(DType dtype, Make make) {
  switch (dtype) {
    case DType::kF32:
      return make.template operator()<float>();
    case DType::kF64:
      return make.template operator()<double>();
    case DType::kI64:
      return make.template operator()<int64_t>();
    case DType::kI32:
      return make.template operator()<int32_t>();
    case DType::kI8:
      return make.template operator()<int8_t>();
    case DType::kU8:
      return make.template operator()<uint8_t>();
    default:
      return nullptr;
  }
}

// ForNumber, and also BOOL.
template <typename Make>
HostFunction ForNumberOrBool(DType dtype, Make make) {
  return dtype == DType::kBool ? make.template operator()<bool>() : ForNumber(dtype, make);
}

// ForNumber, restricted to F32 and F64.
template <typename Make>
HostFunction ForFloating(DType dtype, Make make) {
  return dtype == DType::kF32   ? make.template operator()<float>()
         : dtype == DType::kF64 ? make.template operator()<double>()
                                : nullptr;
}

}  // namespace lockstep::device::reference

#endif  // LOCKSTEP_WORKER_KERNELS_REFERENCE_ELEMENT_TYPES_H_
