// Random axes, orders and indices.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_GRADIENTS_INDEX_DICE_H_
#define LOCKSTEP_TESTS_GRADIENTS_INDEX_DICE_H_

#include <vector>

#include "tests/gradients/gradient_check.h"

namespace lockstep {

// 0, 1, ... in random order.
inline std::vector<int64_t> RandomOrder(CaseNumbers& dice, size_t count) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < count; ++i) {
    order.insert(order.begin() + dice.Int(0, static_cast<int64_t>(i)), static_cast<int64_t>(i));
  }
  return order;
}

inline int64_t RandomAxis(CaseNumbers& dice, const Shape& shape) {
  const auto rank = static_cast<int64_t>(shape.size());
  return dice.Int(-rank, rank - 1);
}

// The same axis, counted from the front.
inline size_t FromFront(int64_t axis, const Shape& shape) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
}

// Indices on an axis of `extent` elements; some are negative, many are equal.
inline Tensor RandomIndices(CaseNumbers& dice, const Shape& shape, int64_t extent) {
  Tensor indices = Tensor::Zeros(dice.Coin() ? DType::kI64 : DType::kI32, shape);
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const int64_t index = dice.Int(-extent, extent - 1);
    if (indices.dtype() == DType::kI64) indices.elements<int64_t>()[i] = index;
    if (indices.dtype() == DType::kI32) indices.elements<int32_t>()[i] = static_cast<int32_t>(index);
  }
  return indices;
}

// The shape of an index tensor for single elements of a tensor of `shape`.
inline Shape ElementIndices(CaseNumbers& dice, const Shape& shape, int64_t axis) {
  Shape indices = shape;
  for (int64_t& dim : indices) dim = dice.Int(1, dim);
  indices[FromFront(axis, shape)] = dice.Int(1, 5);
  return indices;
}

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_GRADIENTS_INDEX_DICE_H_
