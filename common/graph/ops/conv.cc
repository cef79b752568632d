#include "common/graph/ops/conv.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/schema.h"
#include "common/graph/ops/window.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

absl::StatusOr<OpAttributes> ParseConv(const RawAttributes& raw) {
  ConvAttributes conv;
  AttributeReader reader(raw);
  LS_RETURN_IF_ERROR(reader.Ints("kernel_shape", &conv.kernel_shape)
                         .Ints("strides", &conv.strides)
                         .Ints("pads", &conv.pads)
                         .Ints("dilations", &conv.dilations)
                         .Int("group", &conv.group)
                         .Ints("input_shape", &conv.input_shape)
                         .Ints("output_padding", &conv.output_padding)
                         .Finish());
  const size_t rank = conv.kernel_shape.size();
  if (!reader.Has("strides")) conv.strides.assign(rank, 1);
  if (!reader.Has("pads")) conv.pads.assign(2 * rank, 0);
  if (!reader.Has("dilations")) conv.dilations.assign(rank, 1);
  LS_RETURN_IF_ERROR(CheckWindow(conv.kernel_shape, conv.strides, conv.pads, conv.dilations));
  if (conv.group < 1) return absl::InvalidArgumentError(absl::StrCat("group is ", conv.group, "; it is at least 1"));
  return OpAttributes(std::move(conv));
}

RawAttributes FormatConv(const OpAttributes& attributes) {
  const auto& conv = std::get<ConvAttributes>(attributes);
  RawAttributes raw = {{"kernel_shape", conv.kernel_shape},
                       {"strides", conv.strides},
                       {"pads", conv.pads},
                       {"dilations", conv.dilations},
                       {"group", conv.group}};
  if (!conv.input_shape.empty()) raw.emplace("input_shape", conv.input_shape);
  if (!conv.output_padding.empty()) raw.emplace("output_padding", conv.output_padding);
  return raw;
}

// Whether a shape has two dimensions and those of the window behind them.
bool HasSpatialRank(const ConvAttributes& conv, const Shape& shape) {
  return shape.size() == 2 + conv.kernel_shape.size();
}

absl::Status CheckInput(const ConvAttributes& conv, const Shape& input) {
  if (HasSpatialRank(conv, input)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("input has shape ", ShapeString(input), "; convolution with kernel ",
                                                 ShapeString(conv.kernel_shape), " takes [batch, channels, ",
                                                 conv.kernel_shape.size(), " spatial dimensions]"));
}

// The shape of Y for inputs [N, C, spatial...] and `outputs` channels.
absl::StatusOr<Shape> ConvOutputShape(const ConvAttributes& conv, const Shape& input, int64_t outputs) {
  LS_RETURN_IF_ERROR(CheckInput(conv, input));
  Shape shape = {input[0], outputs};
  const size_t rank = conv.kernel_shape.size();
  for (size_t d = 0; d < rank; ++d) {
    LS_ASSIGN_OR_RETURN(const int64_t size, WindowCount(input[2 + d], conv.kernel_shape[d], conv.strides[d],
                                                        conv.pads[d], conv.pads[rank + d], conv.dilations[d], false));
    shape.push_back(size);
  }
  return shape;
}

absl::Status CheckKernel(const ConvAttributes& conv, const Shape& weights) {
  if (HasSpatialRank(conv, weights) &&
      std::equal(conv.kernel_shape.begin(), conv.kernel_shape.end(), weights.begin() + 2)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("weights have shape ", ShapeString(weights), ", kernel_shape is ", ShapeString(conv.kernel_shape)));
}

absl::Status CheckWeights(const ConvAttributes& conv, const Shape& input, const Shape& weights) {
  LS_RETURN_IF_ERROR(CheckKernel(conv, weights));
  if (HasSpatialRank(conv, input) && (input[1] % conv.group != 0 || input[1] / conv.group != weights[1])) {
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
  LS_ASSIGN_OR_RETURN(Shape shape, ConvOutputShape(conv, inputs[0]->shape, outputs));
  return std::vector<ValueInfo>{{dtype, std::move(shape)}};
}

absl::StatusOr<std::vector<ValueInfo>> InferGradInput(const Node& node, InputInfos inputs) {
  const auto& conv = std::get<ConvAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  LS_RETURN_IF_ERROR(CheckWeights(conv, conv.input_shape, inputs[1]->shape));
  LS_ASSIGN_OR_RETURN(Shape y, ConvOutputShape(conv, conv.input_shape, inputs[1]->shape[0]));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[1]->dtype, std::move(y)}, "dY"));
  return std::vector<ValueInfo>{{inputs[0]->dtype, conv.input_shape}};
}

absl::StatusOr<std::vector<ValueInfo>> InferGradWeight(const Node& node, InputInfos inputs) {
  const auto& conv = std::get<ConvAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "dY"));
  if (!HasSpatialRank(conv, inputs[0]->shape) || !HasSpatialRank(conv, inputs[1]->shape) ||
      inputs[1]->shape[1] % conv.group != 0) {
    return absl::InvalidArgumentError("dY and X have the window's rank and two more, with channels that group divides");
  }
  const int64_t outputs = inputs[0]->shape[1];
  LS_ASSIGN_OR_RETURN(Shape y, ConvOutputShape(conv, inputs[1]->shape, outputs));
  LS_RETURN_IF_ERROR(CheckLike(*inputs[0], {inputs[1]->dtype, std::move(y)}, "dY"));
  Shape weights = {outputs, inputs[1]->shape[1] / conv.group};
  weights.insert(weights.end(), conv.kernel_shape.begin(), conv.kernel_shape.end());
  return std::vector<ValueInfo>{{inputs[0]->dtype, weights}, {inputs[0]->dtype, {outputs}}};
}

// The shape of Y of a transposed convolution: that of the input whose convolution has X's shape.
absl::StatusOr<Shape> TransposedShape(const ConvAttributes& conv, const Shape& input, int64_t outputs) {
  Shape shape = {input[0], outputs};
  const size_t rank = conv.kernel_shape.size();
  if (!conv.output_padding.empty() && conv.output_padding.size() != rank) {
    return absl::InvalidArgumentError(absl::StrCat("output_padding ", ShapeString(conv.output_padding), " has ",
                                                   conv.output_padding.size(), " entries, expected ", rank));
  }
  for (size_t d = 0; d < rank; ++d) {
    const int64_t more = conv.output_padding.empty() ? 0 : conv.output_padding[d];
    if (more < 0 || more >= conv.strides[d]) {
      return absl::InvalidArgumentError(absl::StrCat("output_padding ", more, " is not below the stride of ",
                                                     conv.strides[d], ": the elements would belong to no window"));
    }
    if (input[2 + d] > kMostExtent) {
      return absl::InvalidArgumentError(absl::StrCat("input ", ShapeString(input), " is too large"));
    }
    const int64_t extent = (conv.kernel_shape[d] - 1) * conv.dilations[d] + 1;
    shape.push_back(conv.strides[d] * (input[2 + d] - 1) + more + extent - conv.pads[d] - conv.pads[rank + d]);
    if (shape.back() < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("pads ", ShapeString(conv.pads), " leave nothing of input ", ShapeString(input)));
    }
  }
  return shape;
}

absl::StatusOr<std::vector<ValueInfo>> InferTransposed(const Node& node, InputInfos inputs) {
  const auto& conv = std::get<ConvAttributes>(node.attributes);
  LS_RETURN_IF_ERROR(CheckFloating(*inputs[0], "X"));
  LS_RETURN_IF_ERROR(CheckInput(conv, inputs[0]->shape));
  LS_RETURN_IF_ERROR(CheckKernel(conv, inputs[1]->shape));
  const DType dtype = inputs[0]->dtype;
  LS_RETURN_IF_ERROR(CheckLike(*inputs[1], {dtype, inputs[1]->shape}, "W"));
  if (inputs[0]->shape[1] != inputs[1]->shape[0] || inputs[0]->shape[1] % conv.group != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", ShapeString(inputs[0]->shape), " has ", inputs[0]->shape[1], " channels, weights ",
                     ShapeString(inputs[1]->shape), " take ", inputs[1]->shape[0], ", and group is ", conv.group));
  }
  int64_t outputs = 0;
  if (__builtin_mul_overflow(inputs[1]->shape[1], conv.group, &outputs)) {
    return absl::InvalidArgumentError(absl::StrCat("weights ", ShapeString(inputs[1]->shape), " in each of group ",
                                                   conv.group, " make too many channels"));
  }
  if (inputs[2] != nullptr) LS_RETURN_IF_ERROR(CheckLike(*inputs[2], {dtype, {outputs}}, "B"));
  LS_ASSIGN_OR_RETURN(Shape shape, TransposedShape(conv, inputs[0]->shape, outputs));
  return std::vector<ValueInfo>{{dtype, std::move(shape)}};
}

// A transposed convolution is the gradient of a convolution by its input: X is that convolution's gradient, dY its
// input.
absl::Status TransposedGradient(GradientBuilder& b) {
  auto conv = std::get<ConvAttributes>(b.node().attributes);
  conv.output_padding.clear();
  const std::string& dy = b.OutputGradient(0);
  if (b.Needs(0)) b.SetInputGradient(0, b.Emit("dX", OpType::kConv, {dy, b.Input(1)}, conv));
  if (b.Needs(1)) b.SetInputGradient(1, b.Emit("dW", OpType::kConvGradWeight, {b.Input(0), dy}, conv));
  if (b.Needs(2)) {
    ReduceAttributes reduce{.axes = {0}, .keep_dims = false};
    for (size_t d = 0; d < conv.kernel_shape.size(); ++d) reduce.axes.push_back(static_cast<int64_t>(2 + d));
    b.SetInputGradient(2, b.Emit("dB", OpType::kReduceSum, {dy}, reduce));
  }
  return absl::OkStatus();
}

absl::Status ConvGradient(GradientBuilder& b) {
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

constexpr OpSchema kConvFamily[] = {
    {OpType::kConv, 2, 3, 1, 1, ParseConv, FormatConv, InferConv, ConvGradient},
    {OpType::kConvTranspose, 2, 3, 1, 1, ParseConv, FormatConv, InferTransposed, TransposedGradient},
    {OpType::kConvGradInput, 2, 2, 1, 1, ParseConv, FormatConv, InferGradInput, nullptr},
    {OpType::kConvGradWeight, 2, 2, 1, 2, ParseConv, FormatConv, InferGradWeight, nullptr},
};

}  // namespace

absl::Span<const OpSchema> ConvFamily() { return kConvFamily; }

}  // namespace lockstep
