#include "common/tensor/tensor.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::StatusOr<Tensor> Tensor::Create(DType dtype, Shape shape) {
  LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(dtype, shape));
  if (bytes > INT64_MAX - static_cast<int64_t>(kAlignment)) {
    return absl::InvalidArgumentError(absl::StrCat("shape ", ShapeString(shape), " has too many bytes"));
  }
  const size_t capacity = (static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.num_elements_ = bytes / DTypeSize(dtype);
  tensor.shape_ = std::move(shape);
  if (capacity != 0) {
    tensor.data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, capacity)));
    if (tensor.data_ == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat("a tensor of ", DTypeName(dtype), " with shape ",
                                                       ShapeString(tensor.shape_), " needs ", bytes,
                                                       " bytes, which this machine could not give"));
    }
    std::memset(tensor.data_.get(), 0, capacity);
  }
  return tensor;
}

Tensor Tensor::Zeros(DType dtype, Shape shape) {
  absl::StatusOr<Tensor> tensor = Create(dtype, std::move(shape));
  LS_CHECK(tensor.ok(), "the shape was checked before and its memory is there");
  return *std::move(tensor);
}

Tensor Tensor::Clone() const {
  Tensor copy = Zeros(dtype_, shape_);
  if (byte_size() != 0) std::memcpy(copy.data(), data(), static_cast<size_t>(byte_size()));
  return copy;
}

bool BitEqual(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.byte_size() == 0 || std::memcmp(a.data(), b.data(), static_cast<size_t>(a.byte_size())) == 0);
}

}  // namespace lockstep
