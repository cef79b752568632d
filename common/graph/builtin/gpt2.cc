// GPT-2 (Radford, Wu, Child, Luan, Amodei and Sutskever, "Language models are unsupervised multitask learners", 2019).
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/graph/builtin/architectures.h"
#include "common/graph/builtin/layer_writer.h"
#include "common/graph/builtin/transformer.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr double kGpt2Deviation = 0.02;
constexpr double kGpt2Epsilon = 1e-5;
// The mask is a constant of [length, length], which the metagraph and every plan hold: 256 MiB at this length.
constexpr int64_t kMostPositions = 8192;

// [length, length]: 0 where a position may look, -infinity at what comes after it.
Tensor CausalMask(int64_t length) {
  Tensor mask = Tensor::Zeros(DType::kF32, {length, length});
  float* elements = mask.elements<float>().data();
  for (int64_t row = 0; row < length; ++row) {
    for (int64_t column = row + 1; column < length; ++column) {
      elements[row * length + column] = -std::numeric_limits<float>::infinity();
    }
  }
  return mask;
}

class Gpt2Writer {
 public:
  Gpt2Writer(const ModelSpec& model, const GraphInput& input)
      : model_(model),
        layers_(input),
        shape_{input.shape[1], model.heads, model.width},
        mask_(layers_.Constant("causal_mask", CausalMask(input.shape[1]))) {}

  Graph Write() {
    const std::string wte =
        layers_.Parameter("transformer.wte.weight", {model_.vocabulary, model_.width}, NormalInit(kGpt2Deviation));
    std::string x = Embed(wte);
    for (int64_t i = 0; i < model_.layers; ++i) x = Block(absl::StrCat("transformer.h.", i), x);
    x = layers_.LayerNorm("transformer.ln_f", x, model_.width, kGpt2Epsilon);
    x = layers_.Add("lm_head", OpType::kGemm, {x, wte}, GemmAttributes{1.0, 1.0, false, true});
    layers_.Reshape("logits", x, {-1, shape_.length, model_.vocabulary});
    return layers_.Finish();
  }

 private:
  std::string Embed(const std::string& wte) {
    const std::string tokens =
        layers_.Add("transformer.wte", OpType::kGather, {wte, layers_.input().name}, GatherAttributes{0});
    const std::string wpe =
        layers_.Parameter("transformer.wpe.weight", {model_.context, model_.width}, NormalInit(kGpt2Deviation));
    const std::string positions = FirstRows(&layers_, "transformer.wpe", wpe, model_.context, shape_.length);
    std::string x = layers_.Add("transformer.embedding", OpType::kAdd, {tokens, positions});
    x = layers_.Dropout("transformer.drop", x, model_.dropout);
    return layers_.Reshape("transformer.rows", x, {-1, model_.width});
  }

  // transformers.Conv1D: a dense layer whose weight is stored [in, out].
  std::string Dense(const std::string& name, const std::string& x, int64_t in, int64_t out, double deviation) {
    const std::string weight = layers_.Parameter(name + ".weight", {in, out}, NormalInit(deviation));
    const std::string bias = layers_.Parameter(name + ".bias", {out}, ConstantInit(0.0));
    return layers_.Add(name, OpType::kGemm, {x, weight, bias}, GemmAttributes{1.0, 1.0, false, false});
  }

  std::string Block(const std::string& name, const std::string& x) {
    const int64_t width = model_.width;
    // 2 * layers branches are added up on the residual path.
    const double residual = kGpt2Deviation / std::sqrt(2.0 * static_cast<double>(model_.layers));
    std::string y = layers_.LayerNorm(name + ".ln_1", x, width, kGpt2Epsilon);
    y = Dense(name + ".attn.c_attn", y, width, 3 * width, kGpt2Deviation);
    const std::vector<std::string> qkv = layers_.Split(name + ".attn.split", y, 1, 3, width);
    y = Attention(&layers_, name + ".attn", qkv[0], qkv[1], qkv[2], shape_, mask_, model_.dropout);
    y = Dense(name + ".attn.c_proj", y, width, width, residual);
    const std::string middle = Residual(&layers_, name + ".attn.residual", x, y, model_.dropout);
    y = layers_.LayerNorm(name + ".ln_2", middle, width, kGpt2Epsilon);
    y = Dense(name + ".mlp.c_fc", y, width, 4 * width, kGpt2Deviation);
    y = layers_.Add(name + ".mlp.act", OpType::kGelu, {y}, GeluAttributes{true});
    y = Dense(name + ".mlp.c_proj", y, 4 * width, width, residual);
    return Residual(&layers_, name + ".mlp.residual", middle, y, model_.dropout);
  }

  const ModelSpec& model_;
  LayerWriter layers_;
  const AttentionShape shape_;
  const std::string mask_;
};

}  // namespace

absl::StatusOr<Graph> BuildGpt2(const ModelSpec& model, const GraphInput& input) {
  LS_RETURN_IF_ERROR(CheckTransformer(model));
  LS_RETURN_IF_ERROR(CheckTokens(model, input));
  if (input.shape[1] > kMostPositions) {
    return absl::InvalidArgumentError(absl::StrCat(
        "model 'gpt2': a sample of '", input.name, "' has ", input.shape[1], " tokens; at most ", kMostPositions,
        " are supported. Lower data.train.sequence_length or model.builtin.input, and where neither is set "
        "model.builtin.context"));
  }
  return Gpt2Writer(model, input).Write();
}

}  // namespace lockstep
