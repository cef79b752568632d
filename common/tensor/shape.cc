#include "common/tensor/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::StatusOr<int64_t> CheckedNumElements(absl::Span<const int64_t> shape) {
  int64_t product = 1;
  bool overflow = false;
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) {
      return absl::InvalidArgumentError(absl::StrCat("shape ", ShapeString(shape), " has a negative dimension"));
    }
    empty = empty || dim == 0;
    overflow = overflow || (dim != 0 && __builtin_mul_overflow(product, dim, &product));
  }
  if (overflow) return absl::InvalidArgumentError(absl::StrCat("shape ", ShapeString(shape), " has too many elements"));
  return empty ? 0 : product;
}

absl::StatusOr<int64_t> CheckedByteSize(DType dtype, absl::Span<const int64_t> shape) {
  LS_ASSIGN_OR_RETURN(const int64_t elements, CheckedNumElements(shape));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(DTypeSize(dtype)), &bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of ", DTypeName(dtype), " with shape ", ShapeString(shape), " has too many bytes"));
  }
  return bytes;
}

int64_t NumElements(absl::Span<const int64_t> shape) {
  const absl::StatusOr<int64_t> elements = CheckedNumElements(shape);
  LS_CHECK(elements.ok(), "the shape was checked before");
  return *elements;
}

std::vector<int64_t> RowMajorStrides(absl::Span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

std::string ShapeString(absl::Span<const int64_t> shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

}  // namespace lockstep
