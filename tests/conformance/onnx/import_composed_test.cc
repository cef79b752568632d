// Ops that become several of ours, of opsets for which the installed ONNX has no cases: against their definition,
// computed here in float64.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/conformance/onnx/one_node.h"
#include "tests/gradients/gradient_check.h"

namespace lockstep {
namespace {

using Catch::Contains;

constexpr double kNever = -std::numeric_limits<double>::infinity();

void CheckNear(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    if (expected[i] == kNever) CHECK(got[i] == kNever);
    if (expected[i] != kNever) CHECK(got[i] == Approx(expected[i]).margin(1e-9));
  }
}

// An attention by its definition, element by element.
struct AttentionCase {
  int64_t batch = 1, heads = 1, key_heads = 1, queries = 1, new_keys = 1, past = 0, size = 1, value_size = 1;
  bool flat = false, causal = false;
  int64_t left = -1, right = -1, mode = 0;
  double cap = 0;
  int mask = 0;  // 0: none, 1: bools, 2: numbers
  Shape mask_shape;
  Tensor q, k, v, past_k, past_v, allowed, lengths;
  bool has_lengths = false;

  int64_t keys() const { return past + new_keys; }
  double Query(int64_t b, int64_t h, int64_t i, int64_t d) const {
    return Element(q, heads, queries, size, b, h, i, d);
  }
  double Key(int64_t b, int64_t h, int64_t j, int64_t d) const {
    const int64_t g = h / (heads / key_heads);
    return j < past ? past_k.elements<double>()[((b * key_heads + g) * past + j) * size + d]
                    : Element(k, key_heads, new_keys, size, b, g, j - past, d);
  }
  double Value(int64_t b, int64_t h, int64_t j, int64_t d) const {
    const int64_t g = h / (heads / key_heads);
    return j < past ? past_v.elements<double>()[((b * key_heads + g) * past + j) * value_size + d]
                    : Element(v, key_heads, new_keys, value_size, b, g, j - past, d);
  }
  double Element(const Tensor& x, int64_t of_heads, int64_t length, int64_t width, int64_t b, int64_t h, int64_t i,
                 int64_t d) const {
    const int64_t at =
        flat ? ((b * length + i) * of_heads + h) * width + d : ((b * of_heads + h) * length + i) * width + d;
    return x.elements<double>()[static_cast<size_t>(at)];
  }
  // The mask's element that broadcasts to (b, h, i, j); false where it ends before j.
  std::pair<bool, int64_t> MaskAt(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const int64_t at[] = {b, h, i, j};
    int64_t offset = 0;
    for (size_t axis = 0; axis < mask_shape.size(); ++axis) {
      const int64_t place = at[4 - mask_shape.size() + axis];
      if (mask_shape[axis] != 1 && place >= mask_shape[axis]) return {false, 0};
      offset = offset * mask_shape[axis] + (mask_shape[axis] == 1 ? 0 : place);
    }
    return {true, offset};
  }
  bool Sees(int64_t b, int64_t h, int64_t i, int64_t j) const {
    int64_t offset = past;
    if (has_lengths) {
      const int64_t length = lengths.elements<int64_t>()[static_cast<size_t>(b)];
      if (j >= length) return false;
      offset = length - queries;
    }
    if (causal && j > i + offset) return false;
    if (right >= 0 && j > i + offset + right) return false;
    if (left >= 0 && j < i + offset - left) return false;
    if (mask == 0) return true;
    const auto [inside, at] = MaskAt(b, h, i, j);
    return inside && (mask == 2 || allowed.elements<bool>()[static_cast<size_t>(at)]);
  }

  struct Result {
    std::vector<double> y, scores;
  };
  Result Compute() const {
    Result result;
    result.y.resize(static_cast<size_t>(batch * heads * queries * value_size));
    for (int64_t row = 0; row < batch * heads * queries; ++row) {
      const int64_t b = row / (heads * queries), h = row / queries % heads, i = row % queries;
      std::vector<double> raw, capped, masked;
      bool any = false;
      for (int64_t j = 0; j < keys(); ++j) {
        double score = 0;
        for (int64_t d = 0; d < size; ++d) score += Query(b, h, i, d) * Key(b, h, j, d);
        raw.push_back(score / std::sqrt(static_cast<double>(size)));
        capped.push_back(cap == 0 ? raw.back() : cap * std::tanh(raw.back() / cap));
        double added = capped.back();
        if (mask == 2) {
          const auto [inside, at] = MaskAt(b, h, i, j);
          if (inside) added += allowed.elements<double>()[static_cast<size_t>(at)];
        }
        masked.push_back(Sees(b, h, i, j) ? added : kNever);
        any = any || Sees(b, h, i, j);
      }
      std::vector<double> weights(masked.size(), 0.0);
      double sum = 0;
      const double largest = *std::max_element(masked.begin(), masked.end());
      for (size_t j = 0; any && j < masked.size(); ++j) sum += weights[j] = std::exp(masked[j] - largest);
      for (double& weight : weights) weight = any ? weight / sum : 0;
      for (int64_t d = 0; d < value_size; ++d) {
        double y = 0;
        for (int64_t j = 0; j < keys(); ++j) y += weights[static_cast<size_t>(j)] * Value(b, h, j, d);
        const int64_t at = flat ? ((b * queries + i) * heads + h) * value_size + d : row * value_size + d;
        result.y[static_cast<size_t>(at)] = y;
      }
      const std::vector<double>& asked = mode == 0 ? raw : mode == 1 ? capped : mode == 2 ? masked : weights;
      result.scores.insert(result.scores.end(), asked.begin(), asked.end());
    }
    return result;
  }
};

AttentionCase RandomAttention(CaseNumbers& dice) {
  AttentionCase c;
  c.batch = dice.Int(1, 2);
  c.key_heads = dice.Int(1, 2);
  c.heads = c.key_heads * dice.Int(1, 2);
  c.queries = dice.Int(1, 5);
  c.new_keys = dice.Int(1, 5);
  c.size = dice.Int(1, 3);
  c.value_size = dice.Int(1, 3);
  c.flat = dice.Coin();
  c.causal = dice.Coin();
  if (dice.Coin()) c.left = dice.Int(0, 2);
  if (dice.Coin()) c.right = dice.Int(0, 2);
  if (dice.Coin()) c.cap = 0.75;
  c.mode = dice.Int(0, 3);
  c.has_lengths = dice.Int(0, 3) == 0;
  if (!c.has_lengths && dice.Coin()) c.past = dice.Int(1, 3);
  const auto shaped = [&](int64_t heads, int64_t length, int64_t width) {
    return c.flat ? Shape{c.batch, length, heads * width} : Shape{c.batch, heads, length, width};
  };
  c.q = dice.Uniform(shaped(c.heads, c.queries, c.size));
  c.k = dice.Uniform(shaped(c.key_heads, c.new_keys, c.size));
  c.v = dice.Uniform(shaped(c.key_heads, c.new_keys, c.value_size));
  c.past_k = dice.Uniform({c.batch, c.key_heads, c.past, c.size});
  c.past_v = dice.Uniform({c.batch, c.key_heads, c.past, c.value_size});
  if (c.has_lengths) {
    c.lengths = Tensor::Zeros(DType::kI64, {c.batch});
    for (int64_t& length : c.lengths.elements<int64_t>()) length = dice.Int(1, c.new_keys);
  }
  c.mask = static_cast<int>(dice.Int(0, 2));
  const Shape whole = {c.batch, c.heads, c.queries, c.keys()};
  c.mask_shape.assign(whole.begin() + dice.Int(0, 3), whole.end());
  for (size_t i = 0; i + 1 < c.mask_shape.size(); ++i) {
    if (dice.Coin()) c.mask_shape[i] = 1;
  }
  if (c.keys() > 2 && dice.Coin()) --c.mask_shape.back();
  if (c.mask == 2) c.allowed = dice.Uniform(c.mask_shape);
  if (c.mask == 1) {
    c.allowed = Tensor::Zeros(DType::kBool, c.mask_shape);
    for (bool& allowed : c.allowed.elements<bool>()) allowed = dice.Int(0, 2) != 0;
  }
  return c;
}

TEST_CASE("composed: Attention with every mask, window, cap and output", "[onnx]") {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    CaseNumbers dice(seed);
    const AttentionCase c = RandomAttention(dice);
    OneNode node("Attention");
    node.Output("");
    node.Output("");
    node.Output("scores");
    node.Input(&c.q);
    node.Input(&c.k);
    node.Input(&c.v);
    node.Input(c.mask == 0 ? nullptr : &c.allowed);
    node.Input(c.past == 0 ? nullptr : &c.past_k);
    node.Input(c.past == 0 ? nullptr : &c.past_v);
    node.Input(c.has_lengths ? &c.lengths : nullptr);
    if (c.flat) node.Set("q_num_heads", c.heads);
    if (c.flat) node.Set("kv_num_heads", c.key_heads);
    node.Set("is_causal", c.causal ? 1 : 0);
    node.Set("left_window_size", c.left);
    node.Set("right_window_size", c.right);
    node.Set("qk_matmul_output_mode", c.mode);
    node.SetFloat("softcap", c.cap);

    const auto results = node.Run();

    const AttentionCase::Result expected = c.Compute();
    CheckNear(results.at("y0"), expected.y);
    CheckNear(results.at("scores"), expected.scores);
  }
}

TEST_CASE("composed: RotaryEmbedding turns pairs of elements", "[onnx]") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    CaseNumbers dice(seed);
    const int64_t batch = dice.Int(1, 2), heads = dice.Int(1, 3), length = dice.Int(1, 4), size = 2 * dice.Int(1, 4);
    const int64_t width = dice.Coin() ? size : 2 * dice.Int(1, size / 2);
    const bool flat = dice.Coin(), interleaved = dice.Coin(), by_position = dice.Coin();
    const Tensor x = dice.Uniform(flat ? Shape{batch, length, heads * size} : Shape{batch, heads, length, size});
    const Shape table = by_position ? Shape{7, width / 2} : Shape{batch, length, width / 2};
    const Tensor cosine = dice.Uniform(table);
    const Tensor sine = dice.Uniform(table);
    Tensor positions = Tensor::Zeros(DType::kI64, {batch, length});
    for (int64_t& position : positions.elements<int64_t>()) position = dice.Int(0, 6);
    OneNode node("RotaryEmbedding");
    for (const Tensor* input : {&x, &cosine, &sine}) node.Input(input);
    if (by_position) node.Input(&positions);
    if (flat) node.Set("num_heads", heads);
    node.Set("interleaved", interleaved ? 1 : 0);
    if (width < size) node.Set("rotary_embedding_dim", width);

    std::vector<double> expected(x.elements<double>().begin(), x.elements<double>().end());
    for (int64_t row = 0; row < batch * heads * length; ++row) {
      const int64_t b = row / (heads * length), h = row / length % heads, i = row % length;
      const int64_t at = flat ? ((b * length + i) * heads + h) * size : row * size;
      for (int64_t d = 0; d < width / 2; ++d) {
        const int64_t angle_row = by_position ? positions.elements<int64_t>()[b * length + i] : b * length + i;
        const double c = cosine.elements<double>()[angle_row * (width / 2) + d];
        const double s = sine.elements<double>()[angle_row * (width / 2) + d];
        const int64_t first = at + (interleaved ? 2 * d : d), second = at + (interleaved ? 2 * d + 1 : d + width / 2);
        const double x1 = x.elements<double>()[first], x2 = x.elements<double>()[second];
        expected[static_cast<size_t>(first)] = c * x1 - s * x2;
        expected[static_cast<size_t>(second)] = s * x1 + c * x2;
      }
    }

    CheckNear(node.Run().at("y0"), expected);
  }
}

TEST_CASE("composed: Swish, SwiGLU and SpaceToDepth with channels first", "[onnx]") {
  CaseNumbers dice(3);
  const Tensor a = dice.Uniform({2, 3});
  const Tensor b = dice.Uniform({2, 3});
  OneNode swish("Swish"), gated("SwiGLU");
  swish.Input(&a);
  swish.SetFloat("alpha", 0.5);
  gated.Input(&a);
  gated.Input(&b);
  std::vector<double> swished, multiplied;
  for (size_t i = 0; i < 6; ++i) {
    const double x = a.elements<double>()[i];
    swished.push_back(x / (1 + std::exp(-0.5 * x)));
    multiplied.push_back(x / (1 + std::exp(-x)) * b.elements<double>()[i]);
  }
  CheckNear(swish.Run().at("y0"), swished);
  CheckNear(gated.Run().at("y0"), multiplied);
  const Tensor x = dice.Uniform({2, 3, 4, 6});
  for (const bool crd : {true, false}) {
    OneNode blocks("SpaceToDepth");
    blocks.Input(&x);
    blocks.Set("blocksize", 2);
    blocks.SetString("mode", crd ? "CRD" : "DCR");
    std::vector<double> expected(144);
    for (int64_t i = 0; i < 144; ++i) {
      const int64_t n = i / 72, c = i / 24 % 3, h = i / 6 % 4, w = i % 6;
      const int64_t block = h % 2 * 2 + w % 2;
      const int64_t channel = crd ? c * 4 + block : block * 3 + c;
      expected[static_cast<size_t>(((n * 12 + channel) * 2 + h / 2) * 3 + w / 2)] = x.elements<double>()[i];
    }
    CheckNear(blocks.Run().at("y0"), expected);
  }
}

TEST_CASE("composed: an attribute that a reader does not know is refused", "[onnx]") {
  CaseNumbers dice(3);
  const Tensor x = dice.Uniform({1, 1, 2, 2});
  for (const char* op : {"Attention", "RotaryEmbedding", "Swish", "Shape", "Dropout", "SpaceToDepth", "Tan"}) {
    CAPTURE(op);
    OneNode node(op);
    const int inputs = op == std::string("Attention") || op == std::string("RotaryEmbedding") ? 3 : 1;
    for (int i = 0; i < inputs; ++i) node.Input(&x);
    node.Set("blocksize", 1);
    node.Set("unheard_of", 1);
    const auto model = node.Import();
    REQUIRE_FALSE(model.ok());
    CHECK_THAT(std::string(model.status().message()), Contains("attribute"));
  }
}

TEST_CASE("composed: random numbers are drawn in training alone, and take F64 too", "[onnx]") {
  CaseNumbers dice(3);
  const Tensor x = dice.Uniform({4, 3});
  for (const char* op : {"RandomUniformLike", "RandomNormalLike", "Bernoulli", "Multinomial"}) {
    CAPTURE(op);
    OneNode node(op);
    node.Input(&x);
    CHECK_THAT(std::string(node.Import().status().message()), Contains("another generator"));
    const auto model = node.Import(true);
    REQUIRE(model.ok());
    const auto draw = std::find_if(model->graph.nodes.begin(), model->graph.nodes.end(), [](const Node& n) {
      return n.op == OpType::kUniformLike || n.op == OpType::kNormalLike;
    });
    REQUIRE(draw != model->graph.nodes.end());
    CHECK(std::get<RandomLikeAttributes>(draw->attributes).dtype == DType::kF64);
  }
}

}  // namespace
}  // namespace lockstep
