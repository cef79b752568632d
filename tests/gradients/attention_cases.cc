// Attention in every form that the op has.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/gradients/op_cases.h"

namespace lockstep {
namespace {

Shape HeadsOf(int64_t batch, int64_t heads, int64_t length, int64_t size, bool rows) {
  return rows ? Shape{batch, length, heads, size} : Shape{batch, heads, length, size};
}

// Numbers, and here and there -infinity, but nowhere a query that sees nothing.
Tensor Mask(CaseNumbers& dice, const Shape& shape) {
  Tensor mask = dice.Uniform(shape);
  const auto elements = mask.elements<double>();
  for (size_t i = 0; i < elements.size(); ++i) {
    const bool first = static_cast<int64_t>(i) % shape[3] == 0;
    if (!first && dice.Int(0, 2) == 0) elements[i] = -std::numeric_limits<double>::infinity();
  }
  return mask;
}

GradientCase Attention(CaseNumbers& dice) {
  CaseWriter writer;
  AttentionAttributes attributes;
  attributes.scale = 0.5 + dice.Unit();
  attributes.causal = dice.Coin();
  const int64_t batch = dice.Int(1, 2);
  const int64_t key_heads = dice.Int(1, 2);
  const int64_t heads = key_heads * dice.Int(1, 2);
  const int64_t queries = dice.Int(1, 4);
  int64_t keys = dice.Int(1, 4);
  const int64_t size = dice.Int(1, 3);
  std::vector<std::string> inputs;
  if (dice.Int(0, 2) == 0) {
    keys = queries;
    attributes.packed_heads = heads;
    inputs = {writer.Input(dice.Uniform({batch, keys, heads + 2 * key_heads, size})), "", ""};
  } else {
    attributes.q_rows = dice.Coin();
    attributes.k_rows = dice.Coin();
    attributes.v_rows = dice.Coin();
    inputs = {writer.Input(dice.Uniform(HeadsOf(batch, heads, queries, size, attributes.q_rows))),
              writer.Input(dice.Uniform(HeadsOf(batch, key_heads, keys, size, attributes.k_rows))),
              writer.Input(dice.Uniform(HeadsOf(batch, key_heads, keys, dice.Int(1, 3), attributes.v_rows)))};
  }
  attributes.y_rows = dice.Coin();
  inputs.emplace_back();
  if (dice.Coin()) {
    const auto or_one = [&](int64_t extent) { return dice.Coin() ? extent : 1; };
    inputs.back() = writer.Input(Mask(dice, {or_one(batch), or_one(heads), or_one(queries), or_one(keys)}), false);
  }
  if (dice.Coin()) {
    attributes.ratio = 0.5 + 0.4 * dice.Unit();
    attributes.stream = 77;
    inputs.push_back(writer.Input(Tensor::Of<int64_t>({4}, {5, 6, 7, 8}), false));
  }
  GradientCase made = writer.Op(OpType::kAttention, inputs, attributes);
  made.graph.nodes[0].outputs.push_back("statistics");
  return made;
}

constexpr OpCase kAttentionCases[] = {{OpType::kAttention, Attention}};

}  // namespace

absl::Span<const OpCase> AttentionCases() { return kAttentionCases; }

}  // namespace lockstep
