// Attention: heads in both orders or packed, grouped, masked, dropped, of lengths that fill no block.
#include <cstdint>
#include <string>
#include <vector>

#include "common/graph/passes/training_graph.h"
#include "tests/contracts/device_case_builder.h"

namespace lockstep {
namespace {

Shape HeadsOf(int64_t batch, int64_t heads, int64_t length, int64_t size, bool rows) {
  return rows ? Shape{batch, length, heads, size} : Shape{batch, heads, length, size};
}

void MakeAttention(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  AttentionAttributes attributes;
  attributes.scale = dice.Flip() ? 1.0 : 0.25;
  attributes.causal = dice.Flip();
  const int64_t batch = dice.Roll(1, 3);
  const int64_t key_heads = dice.Roll(1, 3);
  const int64_t heads = key_heads * dice.Roll(1, 3);
  const int64_t queries = dice.Flip() ? dice.Roll(1, 9) : dice.Roll(25, 80);
  int64_t keys = dice.Flip() ? queries : dice.Roll(1, 80);
  const int64_t size = dice.Roll(1, 40);
  int64_t value_size = size;
  std::vector<std::string> inputs;
  if (dice.Roll(0, 2) == 0) {
    keys = queries;
    attributes.packed_heads = heads;
    inputs = {b.In({batch, keys, heads + 2 * key_heads, size}), "", ""};
  } else {
    attributes.q_rows = dice.Flip();
    attributes.k_rows = dice.Flip();
    attributes.v_rows = dice.Flip();
    if (dice.Flip()) value_size = dice.Roll(1, 40);
    inputs = {b.In(HeadsOf(batch, heads, queries, size, attributes.q_rows)),
              b.In(HeadsOf(batch, key_heads, keys, size, attributes.k_rows)),
              b.In(HeadsOf(batch, key_heads, keys, value_size, attributes.v_rows))};
  }
  attributes.y_rows = dice.Flip();
  std::vector<std::string> others = {""};
  if (dice.Flip()) {
    const auto or_one = [&](int64_t extent) { return dice.Flip() ? extent : 1; };
    others[0] = b.In({or_one(batch), or_one(heads), or_one(queries), or_one(keys)});
  }
  if (dice.Roll(0, 2) == 0) {
    attributes.ratio = 0.3;
    attributes.stream = 11;
    others.push_back(b.In({4}, DType::kI64, kRandomInput));
  }
  std::vector<std::string> forward_inputs = inputs;
  forward_inputs.insert(forward_inputs.end(), others.begin(), others.end());
  // Scores are sums, their errors those of exponents, and gradients sum over the queries of a group of heads.
  c.terms = 8 * (size + value_size + keys) + 4 * heads / key_heads * queries;
  const auto forward = b.Op(OpType::kAttention, forward_inputs, attributes, 2);
  if (op == OpType::kAttention) return;
  std::vector<std::string> backward = {b.In(b.ShapeOf(forward[0]))};
  backward.insert(backward.end(), inputs.begin(), inputs.end());
  backward.insert(backward.end(), forward.begin(), forward.end());
  backward.insert(backward.end(), others.begin(), others.end());
  const auto gradients = b.Op(op, backward, attributes, attributes.packed_heads > 0 ? 1 : 3);
  // In the gradients of Q and K products of dY and V cancel, all of them where there is one key.
  if (gradients.size() == 3) c.scale = gradients[2];
}

}  // namespace

bool MakeAttentionCase(OpType op, Dice& dice, CaseBuilder& b, DeviceCase& c) {
  if (op != OpType::kAttention && op != OpType::kAttentionGrad) return false;
  MakeAttention(op, dice, b, c);
  return true;
}

}  // namespace lockstep
