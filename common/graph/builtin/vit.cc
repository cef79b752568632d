// The vision transformer (Dosovitskiy et al., "An image is worth 16x16 words: transformers for image recognition at
// scale", 2020).
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/graph/builtin/architectures.h"
#include "common/graph/builtin/layer_writer.h"
#include "common/graph/builtin/transformer.h"
#include "common/status/status_macros.h"
#include "common/tensor/shape.h"

namespace lockstep {
namespace {

constexpr double kEpsilon = 1e-6;

// Xavier's bound for a weight [out, in].
InitRule XavierInit(int64_t in, int64_t out) { return UniformInit(std::sqrt(6.0 / static_cast<double>(in + out))); }

class VitWriter {
 public:
  VitWriter(const ModelSpec& model, const GraphInput& input)
      : model_(model),
        layers_(input),
        patches_((input.shape[2] / model.patch) * (input.shape[3] / model.patch)),
        shape_{patches_ + 1, model.heads, model.width} {}

  Graph Write() {
    std::string x = Embed();
    for (int64_t i = 0; i < model_.layers; ++i) x = Block(absl::StrCat("encoder.layers.encoder_layer_", i), x);
    x = layers_.LayerNorm("encoder.ln", x, model_.width, kEpsilon);
    x = layers_.Reshape("encoder.sequence", x, {-1, shape_.length, model_.width});
    x = layers_.Add("heads.token", OpType::kSlice, {x}, SliceAttributes{{0}, {1}, {1}, {1}});
    x = layers_.Reshape("heads.rows", x, {-1, model_.width});
    layers_.Linear("heads.head", x, model_.width, model_.outputs, {ConstantInit(0.0), ConstantInit(0.0)});
    return layers_.Finish();
  }

 private:
  // The class token in front of the patches. Both are padded with zeros and added up, which does not need to know the
  // batch.
  std::string Embed() {
    const int64_t width = model_.width;
    const std::string token = layers_.Parameter("class_token", {1, 1, width}, ConstantInit(0.0));
    const int64_t fan_in = layers_.input().shape[1] * model_.patch * model_.patch;
    std::string x =
        layers_.Conv2d("conv_proj", layers_.input().name, {width, layers_.input().shape[1], model_.patch, model_.patch},
                       model_.patch, 0, {NormalInit(std::sqrt(1.0 / static_cast<double>(fan_in))), ConstantInit(0.0)});
    x = layers_.Reshape("patches.flat", x, {-1, width, patches_});
    x = layers_.Transpose("patches", x, {0, 2, 1});
    x = layers_.Add("patches.behind", OpType::kPad, {x}, PadAttributes{{0, 1, 0, 0, 0, 0}});
    const std::string first =
        layers_.Add("class_token.before", OpType::kPad, {token}, PadAttributes{{0, 0, 0, 0, patches_, 0}});
    const std::string positions =
        layers_.Parameter("encoder.pos_embedding", {1, shape_.length, width}, NormalInit(0.02));
    const std::string added = layers_.Add("encoder.pos_and_token", OpType::kAdd, {first, positions});
    x = layers_.Add("encoder.embedding", OpType::kAdd, {x, added});
    x = layers_.Reshape("encoder.rows", x, {-1, width});
    return layers_.Dropout("encoder.dropout", x, model_.dropout);
  }

  std::string Block(const std::string& name, const std::string& x) {
    const int64_t width = model_.width;
    std::string y = layers_.LayerNorm(name + ".ln_1", x, width, kEpsilon);
    // torch.nn.MultiheadAttention keeps the three projections in one weight.
    const std::string attention = name + ".self_attention";
    const std::string weight =
        layers_.Parameter(attention + ".in_proj_weight", {3 * width, width}, XavierInit(width, 3 * width));
    const std::string bias = layers_.Parameter(attention + ".in_proj_bias", {3 * width}, ConstantInit(0.0));
    y = layers_.Add(attention + ".in_proj", OpType::kGemm, {y, weight, bias}, GemmAttributes{1.0, 1.0, false, true});
    const std::vector<std::string> qkv = layers_.Split(attention + ".split", y, 1, 3, width);
    y = Attention(&layers_, attention, qkv[0], qkv[1], qkv[2], shape_, "", 0.0);
    y = layers_.Linear(attention + ".out_proj", y, width, width, {TorchInit(width).weight, ConstantInit(0.0)});
    const std::string middle = Residual(&layers_, name + ".residual", x, y, model_.dropout);
    y = layers_.LayerNorm(name + ".ln_2", middle, width, kEpsilon);
    y = layers_.Linear(name + ".mlp.0", y, width, 4 * width, {XavierInit(width, 4 * width), NormalInit(1e-6)});
    y = layers_.Add(name + ".mlp.1", OpType::kGelu, {y}, GeluAttributes{false});
    y = layers_.Dropout(name + ".mlp.2", y, model_.dropout);
    y = layers_.Linear(name + ".mlp.3", y, 4 * width, width, {XavierInit(4 * width, width), NormalInit(1e-6)});
    return Residual(&layers_, name + ".mlp.residual", middle, y, model_.dropout);
  }

  const ModelSpec& model_;
  LayerWriter layers_;
  const int64_t patches_;
  const AttentionShape shape_;
};

}  // namespace

absl::StatusOr<Graph> BuildVit(const ModelSpec& model, const GraphInput& input) {
  LS_RETURN_IF_ERROR(CheckTransformer(model));
  LS_RETURN_IF_ERROR(CheckImages(model, input, model.patch));
  if (model.patch < 1 || input.shape[2] % model.patch != 0 || input.shape[3] % model.patch != 0) {
    return absl::InvalidArgumentError(absl::StrCat("model 'vit': patches of ", model.patch, " x ", model.patch,
                                                   " do not divide images of ", ShapeString(input.shape),
                                                   "; choose another patch"));
  }
  return VitWriter(model, input).Write();
}

}  // namespace lockstep
