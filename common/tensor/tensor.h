// A host tensor: row-major, contiguous, 64-byte aligned, owning. It carries weights, slots, initial values and
// constants between stages; kernels work on device buffers instead.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_TENSOR_TENSOR_H_
#define LOCKSTEP_COMMON_TENSOR_TENSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/status/check.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace lockstep {

// Name, type and shape of a tensor, without its elements.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

class Tensor {
 public:
  static constexpr size_t kAlignment = 64;

  // An F32 tensor of shape [0].
  Tensor() : dtype_(DType::kF32), shape_{0} {}

  // A zero-filled tensor. InvalidArgument for an impossible shape, ResourceExhausted when memory does not suffice.
  static absl::StatusOr<Tensor> Create(DType dtype, Shape shape);

  // As Create, for shapes checked before; aborts when it fails.
  static Tensor Zeros(DType dtype, Shape shape);

  // A tensor with the given elements in row-major order. REQUIRES: as many values as the shape has elements.
  template <typename T>
  static Tensor Of(Shape shape, absl::Span<const T> values);

  Tensor(Tensor&&) = default;
  Tensor& operator=(Tensor&&) = default;
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  // A deep copy.
  Tensor Clone() const;

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return num_elements_; }
  int64_t byte_size() const { return num_elements_ * DTypeSize(dtype_); }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  absl::Span<std::byte> bytes() { return {data_.get(), static_cast<size_t>(byte_size())}; }
  absl::Span<const std::byte> bytes() const { return {data_.get(), static_cast<size_t>(byte_size())}; }

  // The elements. REQUIRES: T is the tensor's element type.
  template <typename T>
  absl::Span<T> elements() {
    LS_CHECK(DTypeOf<T>() == dtype_, "elements are read under the tensor's own type");
    return {reinterpret_cast<T*>(data_.get()), static_cast<size_t>(num_elements_)};
  }
  template <typename T>
  absl::Span<const T> elements() const {
    LS_CHECK(DTypeOf<T>() == dtype_, "elements are read under the tensor's own type");
    // Not in braces: those would make a list of two bools.
    return absl::Span<const T>(reinterpret_cast<const T*>(data_.get()), static_cast<size_t>(num_elements_));
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };

  DType dtype_;
  Shape shape_;
  int64_t num_elements_ = 0;
  std::unique_ptr<std::byte[], Free> data_;
};

template <typename T>
Tensor Tensor::Of(Shape shape, absl::Span<const T> values) {
  Tensor tensor = Zeros(DTypeOf<T>(), std::move(shape));
  LS_CHECK(static_cast<int64_t>(values.size()) == tensor.num_elements(), "one value per element");
  std::copy(values.begin(), values.end(), tensor.elements<T>().begin());
  return tensor;
}

// True when dtype, shape and every byte are equal.
bool BitEqual(const Tensor& a, const Tensor& b);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_TENSOR_H_
