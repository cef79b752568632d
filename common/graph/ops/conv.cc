#include "common/graph/ops/conv.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/graph/ops/window.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> Parse(const RawAttributes& raw) {
  ConvAttributes conv;
  LS_RETURN_IF_ERROR(AttributeReader(raw)
                         .Ints("kernel_shape", &conv.kernel_shape)
                         .Ints("strides", &conv.strides)
                         .Ints("pads", &conv.pads)
                         .Ints("dilations", &conv.dilations)
                         .Int("group", &conv.group)
                         .Ints("input_shape", &conv.input_shape)
                         .Finish());
  LS_RETURN_IF_ERROR(CheckWindow(conv.kernel_shape, conv.strides, conv.pads, conv.dilations));
  if (conv.group < 1) return absl::InvalidArgumentError(absl::StrCat("group is ", conv.group, "; it is at least 1"));
  return OpAttributes(std::move(conv));
}

RawAttributes Format(const OpAttributes& attributes) {
  const auto& conv = std::get<ConvAttributes>(attributes);
  RawAttributes raw = {{"kernel_shape", conv.kernel_shape},
                       {"strides", conv.strides},
                       {"pads", conv.pads},
                       {"dilations", conv.dilations},
                       {"group", conv.group}};
  if (!conv.input_shape.empty()) raw.emplace("input_shape", conv.input_shape);
  return raw;
}

// The shape of Y for inputs [N, C, H, W] and `outputs` channels.
absl::StatusOr<Shape> OutputShape(const ConvAttributes& conv, const Shape& input, int64_t outputs) {
  if (input.size() != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("input has shape ", ShapeString(input), "; convolution takes [batch, channels, height, width]"));
  }
  Shape shape = {input[0], outputs};
  for (size_t d = 0; d < 2; ++d) {
    LS_ASSIGN_OR_RETURN(const int64_t size, WindowCount(input[2 + d], conv.kernel_shape[d], conv.strides[d],
                                                        conv.pads[d], conv.pads[2 + d], conv.dilations[d], false));
    shape.push_back(size);
  }
  return shape;
}

absl::Status CheckWeights(const ConvAttributes& conv, const Shape& input, const Shape& weights) {
  if (weights.size() != 4 || weights[2] != conv.kernel_shape[0] || weights[3] != conv.kernel_shape[1]) {
    return absl::InvalidArgumentError(absl::StrCat("weights have shape ", ShapeString(weights), ", kernel_shape is ",
                                                   ShapeString(conv.kernel_shape)));
  }
  if (input.size() == 4 && (input[1] % conv.group != 0 || input[1] / conv.group != weights[1])) {
    return absl::InvalidArgumentError(absl::StrCat("input ", ShapeString(input), " has ", input[1],
                                                   " channels, weights ", ShapeString(weights), " take ", weights[1],
                                                   " in each of group ", conv.group));
  }
  if (weights[0] % conv.group != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(weights[0], " output channels are not divided by group ", conv.group));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ValueInfo>> InferConv(const Node& node, InputInfos inputs) {
  const auto& conv = std::get<ConvAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "X"));
  LS_RETURN_IF_ERROR(CheckWeights(conv, inputs[0]->shape, inputs[1]->shape));
  const DType dtype = inputs[0]->dtype;
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {dtype, inputs[1]->shape}, "W"));
  const int64_t outputs = inputs[1]->shape[0];
  if (inputs[2] != nullptr) LS_RETURN_IF_ERROR(CheckLike(*inputs[2], {dtype, {outputs}}, "B"));
  LS_ASSIGN_OR_RETURN(Shape shape, OutputShape(conv, inputs[0]->shape, outputs));
  return std::vector<ValueInfo>{{dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferGradInput(const Node& node, InputInfos inputs) {
  const auto& conv = std::get<ConvAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_RETURN_IF_ERROR(CheckWeights(conv, conv.input_shape, inputs[1]->shape));
  LS_ASSIGN_OR_RETURN(Shape y, OutputShape(conv, conv.input_shape, inputs[1]->shape[0]));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[1]->dtype, std::move(y)}, "dY"));
  return std::vector<ValueInfo>{{inputs[0]->dtype, conv.input_shape}};
}

absl::StatusOr<std::vector<ValueInfo>> InferGradWeight(const Node& node, InputInfos inputs) {
  const auto& conv = std::get<ConvAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  if (inputs[0]->shape.size() != 4 || inputs[1]->shape.size() != 4 || inputs[1]->shape[1] % conv.group != 0) {
    return absl::InvalidArgumentError("dY and X have rank 4, with channels that group divides");
  }
  const int64_t outputs = inputs[0]->shape[1];
  LS_ASSIGN_OR_RETURN(Shape y, OutputShape(conv, inputs[1]->shape, outputs));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[1]->dtype, std::move(y)}, "dY"));
  const Shape weights = {outputs, inputs[1]->shape[1] / conv.group, conv.kernel_shape[0], conv.kernel_shape[1]};
  return std::vector<ValueInfo>{{inputs[0]->dtype, weights}, {inputs[0]->dtype, {outputs}}};
}

absl::Status Gradient(GradientBuilder& b) {
  auto conv = std::get<ConvAttributes>(b.node().attributes);
  const std::string& dy = b.OutputGradient(0);
  if (b.Needs(1) || b.Needs(2)) {
    std::vector<std::string> outputs = {"dW"};
    if (b.Needs(2)) outputs.push_back("dB");
    const std::vector<std::string> grads = b.EmitMany("dW", OpType::kConvGradWeight, {dy, b.Input(0)}, outputs, conv);
    if (b.Needs(1)) b.SetInputGradient(1, grads[0]);
    if (b.Needs(2)) b.SetInputGradient(2, grads[1]);
  }
  if (b.Needs(0)) {
    conv.input_shape = b.InputInfo(0).shape;
    b.SetInputGradient(0, b.Emit("dX", OpType::kConvGradInput, {dy, b.Input(1)}, conv));
  }
  return absl::OkStatus();
}

constexpr OpSchema kFamily[] = {
    {OpType::kConv, 2, 3, 1, 1, Parse, Format, InferConv, Gradient},
    {OpType::kConvGradInput, 2, 2, 1, 1, Parse, Format, InferGradInput, nullptr},
    {OpType::kConvGradWeight, 2, 2, 1, 2, Parse, Format, InferGradWeight, nullptr},
};

}  // namespace

absl::Span<const OpSchema> ConvFamily() { return kFamily; }

}  // namespace lockstep
