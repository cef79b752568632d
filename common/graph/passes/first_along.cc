#include "common/graph/passes/first_along.h"

#include <cstring>

#include "common/status/check.h"

namespace lockstep {

Tensor FirstAlong(const Tensor& tensor, size_t axis, int64_t count) {
  Shape shape = tensor.shape();
  LS_CHECK(axis < shape.size() && count <= shape[axis], "a tensor has its first entries");
  size_t outer = 1, inner = static_cast<size_t>(DTypeSize(tensor.dtype()));
  for (size_t i = 0; i < axis; ++i) outer *= static_cast<size_t>(shape[i]);
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= static_cast<size_t>(shape[i]);
  const size_t from = static_cast<size_t>(shape[axis]) * inner, to = static_cast<size_t>(count) * inner;
  shape[axis] = count;
  Tensor first = Tensor::Zeros(tensor.dtype(), shape);
  for (size_t o = 0; o < outer; ++o) std::memcpy(first.data() + o * to, tensor.data() + o * from, to);
  return first;
}

}  // namespace lockstep
