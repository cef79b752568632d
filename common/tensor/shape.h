// Shapes and their products, with overflow detected. An empty shape is a scalar; a dimension of zero is legal.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_TENSOR_SHAPE_H_
#define LOCKSTEP_COMMON_TENSOR_SHAPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/dtype.h"

namespace lockstep {

using Shape = std::vector<int64_t>;

// Product of the dimensions. InvalidArgument for a negative dimension or a product over 2^63 - 1; zeros are left out of
// the overflow check, so that products of any subset of the dimensions cannot overflow either.
absl::StatusOr<int64_t> CheckedNumElements(absl::Span<const int64_t> shape);

// Bytes of a tensor. InvalidArgument as above.
absl::StatusOr<int64_t> CheckedByteSize(DType dtype, absl::Span<const int64_t> shape);

// Product of the dimensions of a shape that was checked before. REQUIRES: no negative dimension, no overflow.
int64_t NumElements(absl::Span<const int64_t> shape);

// Row-major strides in elements.
std::vector<int64_t> RowMajorStrides(absl::Span<const int64_t> shape);

// "[64, 1, 28, 28]"; a scalar is "[]".
std::string ShapeString(absl::Span<const int64_t> shape);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_SHAPE_H_
