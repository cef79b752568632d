// Residual networks (He, Zhang, Ren and Sun, "Deep residual learning for image recognition", 2015), with the stride of
// a bottleneck in its 3x3 convolution, as torchvision has it.
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/graph/builtin/architectures.h"
#include "common/graph/builtin/layer_writer.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

class ResnetWriter {
 public:
  ResnetWriter(const GraphInput& input, bool bottleneck) : layers_(input), bottleneck_(bottleneck) {}

  LayerWriter& layers() { return layers_; }

  // A convolution without bias, which begins normal with the deviation sqrt(2 / fan_out), and its normalisation.
  std::string ConvBatchNorm(const std::string& conv, const std::string& bn, const std::string& x, int64_t in,
                            int64_t out, int64_t kernel, int64_t stride) {
    const double fan_out = static_cast<double>(out * kernel * kernel);
    const std::string y =
        layers_.Conv2d(conv, x, {out, in, kernel, kernel}, stride, kernel / 2, NormalInit(std::sqrt(2.0 / fan_out)));
    return layers_.BatchNorm(bn, y, out);
  }

  // One block on top of `x` with channels(); `width` is that of its inner convolutions.
  std::string Block(const std::string& name, const std::string& x, int64_t width, int64_t stride) {
    const auto relu = [&](const std::string& n, const std::string& v) { return layers_.Add(n, OpType::kRelu, {v}); };
    const auto conv = [&](int i, const std::string& v, int64_t in, int64_t out, int64_t kernel, int64_t s) {
      return ConvBatchNorm(absl::StrCat(name, ".conv", i), absl::StrCat(name, ".bn", i), v, in, out, kernel, s);
    };
    const int64_t out = bottleneck_ ? 4 * width : width;
    std::string y;
    if (bottleneck_) {
      y = relu(name + ".relu1", conv(1, x, channels_, width, 1, 1));
      y = relu(name + ".relu2", conv(2, y, width, width, 3, stride));
      y = conv(3, y, width, out, 1, 1);
    } else {
      y = relu(name + ".relu1", conv(1, x, channels_, width, 3, stride));
      y = conv(2, y, width, width, 3, 1);
    }
    std::string shortcut = x;
    if (stride != 1 || channels_ != out) {
      shortcut = ConvBatchNorm(name + ".downsample.0", name + ".downsample.1", x, channels_, out, 1, stride);
    }
    channels_ = out;
    return relu(name + ".relu", layers_.Add(name + ".add", OpType::kAdd, {y, shortcut}));
  }

  int64_t channels() const { return channels_; }

 private:
  LayerWriter layers_;
  const bool bottleneck_;
  int64_t channels_ = 64;
};

}  // namespace

absl::StatusOr<Graph> BuildResnet(const ModelSpec& model, const GraphInput& input) {
  LS_RETURN_IF_ERROR(CheckImages(model, input, 1));
  const bool deep = model.architecture != "resnet18";
  const std::array<int, 4> blocks = deep ? std::array<int, 4>{3, 4, 6, 3} : std::array<int, 4>{2, 2, 2, 2};
  ResnetWriter resnet(input, model.architecture == "resnet50");
  LayerWriter& layers = resnet.layers();
  const int64_t kernel = model.small_images ? 3 : 7;
  std::string x =
      resnet.ConvBatchNorm("conv1", "bn1", input.name, input.shape[1], 64, kernel, model.small_images ? 1 : 2);
  x = layers.Add("relu", OpType::kRelu, {x});
  if (!model.small_images) x = layers.MaxPool("maxpool", x, 3, 2, 1);
  for (int stage = 0; stage < 4; ++stage) {
    for (int i = 0; i < blocks[stage]; ++i) {
      const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
      x = resnet.Block(absl::StrCat("layer", stage + 1, ".", i), x, int64_t{64} << stage, stride);
    }
  }
  x = layers.Add("avgpool", OpType::kGlobalAveragePool, {x});
  x = layers.Add("flatten", OpType::kFlatten, {x}, FlattenAttributes{1});
  layers.Linear("fc", x, resnet.channels(), model.outputs, TorchInit(resnet.channels()));
  return layers.Finish();
}

}  // namespace lockstep
