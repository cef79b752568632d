// Multi-head attention as one op. It computes what a chain of product, mask, softmax, dropout and product computes, but
// stores no value for every pair of a query and a key.
//
//   lockstep.Attention(Q, K, V, mask?, random?) -> Y, statistics
//     S = scale * Q K^T + mask, P = softmax of S over the keys, Y = dropout(P) V
//   lockstep.AttentionGrad(dY, Q, K, V, Y, statistics, mask?, random?) -> dQ, dK, dV
//
// Q is [batch, heads, queries, size], K [batch, key heads, keys, size] and V [batch, key heads, keys, value size]; with
// its attribute q_rows, k_rows, v_rows or y_rows an operand has its second and third dimension exchanged: [batch,
// queries, heads, size], as dense layers write it. Y is like Q with the value size. heads is a multiple of key heads:
// head h attends to key head h / (heads / key heads). `packed`: Q, K and V are one input [batch, length, heads + 2 *
// key heads, size] in this order, K and V are omitted, and so are dK and dV; dQ is the gradient of the whole.
//
// `causal`: query i attends to keys 0 to i alone; the other pairs are not computed. mask [1 or batch, 1 or heads, 1 or
// queries, 1 or keys] gets no gradient. statistics [batch, heads, queries, 2]: the largest S of the row and one over
// the sum of e^(S - largest), which backward reads. dropout is that of DropoutTraining (dropout.h) over [batch, heads,
// queries, keys]; `random` is given exactly when the ratio is above 0.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_ATTENTION_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_ATTENTION_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep {

struct OpSchema;

struct AttentionAttributes {
  double scale = 1.0;
  bool causal = false;
  // Layout of each operand: [batch, length, heads, size] when true, [batch, heads, length, size] when false.
  bool q_rows = false;
  bool k_rows = false;
  bool v_rows = false;
  bool y_rows = false;
  // Number of query heads where Q, K and V are one packed input; 0 where they are three inputs.
  int64_t packed_heads = 0;
  // As DropoutAttributes.
  double ratio = 0.0;
  uint64_t stream = 0;
  friend bool operator==(const AttentionAttributes&, const AttentionAttributes&) = default;
};

absl::Span<const OpSchema> AttentionFamily();

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_ATTENTION_H_
