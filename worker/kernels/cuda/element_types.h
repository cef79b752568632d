// Dispatch from a DType to the C++ type with which a kernel computes.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_ELEMENT_TYPES_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_ELEMENT_TYPES_H_

#include <cstdint>
#include <type_traits>

#include "common/tensor/bf16.h"
#include "common/tensor/dtype.h"
#include "worker/kernels/cuda/own_kernels.h"

namespace lockstep::device::cuda {

// Passes a type as an argument.
template <typename T>
struct Type {};

// The type in which elements of T are computed: float for BF16, rounded when stored.
template <typename T>
using Computed = std::conditional_t<std::is_same_v<T, Bf16>, float, T>;

// make(Type<float>()) for F32, make(Type<Bf16>()) for BF16; a refusal of other types.
template <typename Make>
OwnFunction ForStoredFloat(DType dtype, Make make) {
  return dtype == DType::kF32    ? make(Type<float>())
         : dtype == DType::kBF16 ? make(Type<Bf16>())
                                 : OwnFunction{.refusal = kOtherType};
}

// make(Type<T>()) for F32 or F64; a refusal of other types.
template <typename Make>
OwnFunction ForFloating(DType dtype, Make make) {
  switch (dtype) {
    case DType::kF32:
      return make(Type<float>());
    case DType::kF64:
      return make(Type<double>());
    default:
      return {.refusal = kOtherType};
  }
}

// ForFloating, and also I64, I32, I8 and U8.
template <typename Make>
OwnFunction ForNumber(DType dtype, Make make) {
  switch (dtype) {
    case DType::kI64:
      return make(Type<int64_t>());
    case DType::kI32:
      return make(Type<int32_t>());
    case DType::kI8:
      return make(Type<int8_t>());
    case DType::kU8:
      return make(Type<uint8_t>());
    default:
      return ForFloating(dtype, make);
  }
}

// ForFloating and ForNumber, and also BF16, whose kernels compute in Computed<T>.
template <typename Make>
OwnFunction ForFloatingOrBf16(DType dtype, Make make) {
  return dtype == DType::kBF16 ? make(Type<Bf16>()) : ForFloating(dtype, make);
}
template <typename Make>
OwnFunction ForNumberOrBf16(DType dtype, Make make) {
  return dtype == DType::kBF16 ? make(Type<Bf16>()) : ForNumber(dtype, make);
}

// ForNumber, and also BOOL.
template <typename Make>
OwnFunction ForNumberOrBool(DType dtype, Make make) {
  return dtype == DType::kBool ? make(Type<bool>()) : ForNumber(dtype, make);
}

// make(Type<Bits>()) for the unsigned integer of the type's size, for kernels that only move elements.
template <typename Make>
OwnFunction ForBits(DType dtype, Make make) {
  switch (DTypeSize(dtype)) {
    case 1:
      return make(Type<uint8_t>());
    case 2:
      return make(Type<uint16_t>());
    case 4:
      return make(Type<uint32_t>());
    default:
      return make(Type<uint64_t>());
  }
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_ELEMENT_TYPES_H_
