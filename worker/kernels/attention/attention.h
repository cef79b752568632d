// The sizes of attention and the memory layout of its operands, from attributes and shapes that shape inference has
// accepted.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_ATTENTION_ATTENTION_H_
#define LOCKSTEP_WORKER_KERNELS_ATTENTION_ATTENTION_H_

#include <cstdint>

#include "common/graph/ops/attention.h"
#include "common/math/host_device.h"
#include "common/tensor/shape.h"

namespace lockstep::device {

// An operand as rows of `size` contiguous elements: row r of head h of sample b begins at At(b, h, r). All numbers are
// in elements.
struct AttentionRows {
  int64_t offset = 0;
  int64_t batch = 0;
  int64_t head = 0;
  int64_t row = 0;
  int64_t size = 0;

  [[gnu::always_inline]] LS_HD int64_t At(int64_t b, int64_t h, int64_t r) const {
    return offset + b * batch + h * head + r * row;
  }
};

// The mask's strides, in elements; 0 where it broadcasts.
struct AttentionMask {
  int64_t batch = 0;
  int64_t head = 0;
  int64_t query = 0;
  int64_t key = 0;
};

struct AttentionShape {
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t key_heads = 0;
  int64_t queries = 0;
  int64_t keys = 0;
  AttentionRows q, k, v, y;

  // REQUIRES: a mask of rank 4.
  [[gnu::always_inline]] static AttentionMask MaskOf(const Shape& mask) {
    AttentionMask strides;
    strides.key = mask[3] > 1 ? 1 : 0;
    strides.query = mask[2] > 1 ? mask[3] : 0;
    strides.head = mask[1] > 1 ? mask[2] * mask[3] : 0;
    strides.batch = mask[0] > 1 ? mask[1] * mask[2] * mask[3] : 0;
    return strides;
  }

  // `k_shape` and `v_shape` are not read when Q, K and V are packed.
  [[gnu::always_inline]] AttentionShape(const AttentionAttributes& attributes, const Shape& q_shape,
                                        const Shape& k_shape, const Shape& v_shape) {
    batch = q_shape[0];
    if (attributes.packed_heads > 0) {
      const int64_t all = q_shape[2];
      const int64_t size = q_shape[3];
      heads = attributes.packed_heads;
      key_heads = (all - heads) / 2;
      queries = keys = q_shape[1];
      q = {.offset = 0, .batch = keys * all * size, .head = size, .row = all * size, .size = size};
      k = q;
      k.offset = heads * size;
      v = q;
      v.offset = (heads + key_heads) * size;
    } else {
      heads = q_shape[attributes.q_rows ? 2 : 1];
      queries = q_shape[attributes.q_rows ? 1 : 2];
      key_heads = k_shape[attributes.k_rows ? 2 : 1];
      keys = k_shape[attributes.k_rows ? 1 : 2];
      q = RowsOf(heads, queries, q_shape[3], attributes.q_rows);
      k = RowsOf(key_heads, keys, q_shape[3], attributes.k_rows);
      v = RowsOf(key_heads, keys, v_shape[3], attributes.v_rows);
    }
    y = RowsOf(heads, queries, v.size, attributes.y_rows);
  }

 private:
  [[gnu::always_inline]] static AttentionRows RowsOf(int64_t heads, int64_t length, int64_t size, bool rows) {
    return {.offset = 0,
            .batch = heads * length * size,
            .head = rows ? size : length * size,
            .row = rows ? heads * size : size,
            .size = size};
  }
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_KERNELS_ATTENTION_ATTENTION_H_
