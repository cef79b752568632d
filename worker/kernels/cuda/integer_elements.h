// Access to elements of an integer type that is chosen at launch. One kernel then serves all integer types, which saves
// compile time; integer ops are rare and small in training.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_INTEGER_ELEMENTS_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_INTEGER_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "common/math/host_device.h"
#include "common/tensor/bf16.h"
#include "common/tensor/dtype.h"

namespace lockstep::device::cuda {

// I64, I32, I8 or U8.
class IntegerElements {
 public:
  static bool Serves(DType dtype) {
    return dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kI8 || dtype == DType::kU8;
  }

  IntegerElements(std::byte* data, DType dtype) : data_(data), dtype_(dtype) {}

  LS_HD int64_t operator[](int64_t i) const {
    if (dtype_ == DType::kI64) return reinterpret_cast<const int64_t*>(data_)[i];
    if (dtype_ == DType::kI32) return reinterpret_cast<const int32_t*>(data_)[i];
    if (dtype_ == DType::kI8) return reinterpret_cast<const int8_t*>(data_)[i];
    return reinterpret_cast<const uint8_t*>(data_)[i];
  }
  // Keeps the low bits.
  LS_HD void Set(int64_t i, int64_t value) const {
    if (dtype_ == DType::kI64) reinterpret_cast<int64_t*>(data_)[i] = value;
    if (dtype_ == DType::kI32) reinterpret_cast<int32_t*>(data_)[i] = static_cast<int32_t>(value);
    if (dtype_ == DType::kI8) reinterpret_cast<int8_t*>(data_)[i] = static_cast<int8_t>(value);
    if (dtype_ == DType::kU8) reinterpret_cast<uint8_t*>(data_)[i] = static_cast<uint8_t>(value);
  }
  LS_HD int64_t lowest() const {
    return dtype_ == DType::kI64   ? std::numeric_limits<int64_t>::min()
           : dtype_ == DType::kI32 ? std::numeric_limits<int32_t>::min()
           : dtype_ == DType::kI8  ? std::numeric_limits<int8_t>::min()
                                   : 0;
  }
  LS_HD int64_t highest() const {
    return dtype_ == DType::kI64   ? std::numeric_limits<int64_t>::max()
           : dtype_ == DType::kI32 ? std::numeric_limits<int32_t>::max()
           : dtype_ == DType::kI8  ? std::numeric_limits<int8_t>::max()
                                   : std::numeric_limits<uint8_t>::max();
  }

 private:
  std::byte* data_;
  DType dtype_;
};

// The same interface for elements stored as T = float or Bf16, so that a kernel body is written once.
template <typename T>
class FloatingElements {
 public:
  static bool Serves(DType dtype) { return dtype == (std::is_same_v<T, Bf16> ? DType::kBF16 : DType::kF32); }

  FloatingElements(std::byte* data, DType) : data_(reinterpret_cast<T*>(data)) {}

  LS_HD float operator[](int64_t i) const { return data_[i]; }
  LS_HD void Set(int64_t i, double value) const { data_[i] = static_cast<float>(value); }
  LS_HD float lowest() const { return -std::numeric_limits<float>::infinity(); }
  LS_HD float highest() const { return std::numeric_limits<float>::infinity(); }

 private:
  T* data_;
};
using FloatElements = FloatingElements<float>;
using Bf16Elements = FloatingElements<Bf16>;

// The sum of two elements. Integers wrap around, by unsigned arithmetic.
LS_HD inline double Plus(double a, double b) { return a + b; }
LS_HD inline int64_t Plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_INTEGER_ELEMENTS_H_
