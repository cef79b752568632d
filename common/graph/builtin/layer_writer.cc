#include "common/graph/builtin/layer_writer.h"

#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/random/random.h"

namespace lockstep {

InitRule ConstantInit(double value) {
  InitRule init;
  init.value = value;
  return init;
}

InitRule NormalInit(double deviation) {
  InitRule init;
  init.kind = InitRule::Kind::kNormal;
  init.value = deviation;
  return init;
}

InitRule UniformInit(double bound) {
  InitRule init;
  init.kind = InitRule::Kind::kUniform;
  init.value = bound;
  return init;
}

LayerInit TorchInit(int64_t fan_in) {
  InitRule init;
  init.kind = InitRule::Kind::kKaimingUniform;
  init.value = std::sqrt(1.0 / 3.0);
  init.fan_in = fan_in;
  return {init, init};
}

LayerWriter::LayerWriter(const GraphInput& input) { graph_.inputs.push_back(input); }

std::string LayerWriter::Add(const std::string& name, OpType op, std::vector<std::string> inputs,
                             OpAttributes attributes) {
  std::string output = name + ".out";
  graph_.nodes.push_back({name, op, std::move(inputs), {output}, std::move(attributes)});
  return output;
}

std::vector<std::string> LayerWriter::Split(const std::string& name, const std::string& x, int64_t axis, int64_t parts,
                                            int64_t size) {
  SplitAttributes attributes;
  attributes.axis = axis;
  attributes.split.assign(static_cast<size_t>(parts), size);
  std::vector<std::string> outputs;
  for (int64_t i = 0; i < parts; ++i) outputs.push_back(absl::StrCat(name, ".", i));
  graph_.nodes.push_back({name, OpType::kSplit, {x}, outputs, attributes});
  return outputs;
}

std::string LayerWriter::Parameter(const std::string& name, Shape shape, const InitRule& init) {
  graph_.variables.push_back({name, DType::kF32, std::move(shape), VariableKind::kParameter, init});
  return name;
}

std::string LayerWriter::Constant(const std::string& name, Tensor value) {
  graph_.constants.push_back({name, std::make_shared<const Tensor>(std::move(value))});
  return name;
}

std::string LayerWriter::Linear(const std::string& name, const std::string& x, int64_t in, int64_t out,
                                const LayerInit& init) {
  const std::string weight = Parameter(name + ".weight", {out, in}, init.weight);
  const std::string bias = Parameter(name + ".bias", {out}, init.bias);
  return Add(name, OpType::kGemm, {x, weight, bias}, GemmAttributes{1.0, 1.0, false, true});
}

std::string LayerWriter::ConvNode(const std::string& name, std::vector<std::string> inputs, int64_t kernel,
                                  int64_t stride, int64_t pad) {
  ConvAttributes conv;
  conv.kernel_shape = {kernel, kernel};
  conv.strides = {stride, stride};
  conv.pads = {pad, pad, pad, pad};
  return Add(name, OpType::kConv, std::move(inputs), conv);
}

std::string LayerWriter::Conv2d(const std::string& name, const std::string& x, Shape weight, int64_t stride,
                                int64_t pad, const LayerInit& init) {
  const int64_t out = weight[0];
  const int64_t kernel = weight[2];
  const std::string w = Parameter(name + ".weight", std::move(weight), init.weight);
  const std::string b = Parameter(name + ".bias", {out}, init.bias);
  return ConvNode(name, {x, w, b}, kernel, stride, pad);
}

std::string LayerWriter::Conv2d(const std::string& name, const std::string& x, Shape weight, int64_t stride,
                                int64_t pad, const InitRule& init) {
  const int64_t kernel = weight[2];
  const std::string w = Parameter(name + ".weight", std::move(weight), init);
  return ConvNode(name, {x, w}, kernel, stride, pad);
}

std::string LayerWriter::MaxPool(const std::string& name, const std::string& x, int64_t kernel, int64_t stride,
                                 int64_t pad) {
  PoolAttributes pool;
  pool.kernel_shape = {kernel, kernel};
  pool.strides = {stride, stride};
  pool.pads = {pad, pad, pad, pad};
  return Add(name, OpType::kMaxPool, {x}, pool);
}

std::string LayerWriter::BatchNorm(const std::string& name, const std::string& x, int64_t channels) {
  std::vector<std::string> inputs = {x};
  const auto add = [&](const char* part, double value, VariableKind kind) {
    inputs.push_back(absl::StrCat(name, ".", part));
    graph_.variables.push_back({inputs.back(), DType::kF32, {channels}, kind, ConstantInit(value)});
  };
  add("weight", 1.0, VariableKind::kParameter);
  add("bias", 0.0, VariableKind::kParameter);
  add("running_mean", 0.0, VariableKind::kStatistic);
  add("running_var", 1.0, VariableKind::kStatistic);
  return Add(name, OpType::kBatchNormalization, std::move(inputs), BatchNormAttributes{1e-5, 0.9, true, true});
}

std::string LayerWriter::LayerNorm(const std::string& name, const std::string& x, int64_t width, double epsilon) {
  const std::string weight = Parameter(name + ".weight", {width}, ConstantInit(1.0));
  const std::string bias = Parameter(name + ".bias", {width}, ConstantInit(0.0));
  return Add(name, OpType::kLayerNormalization, {x, weight, bias}, LayerNormAttributes{-1, epsilon});
}

std::string LayerWriter::Dropout(const std::string& name, const std::string& x, double ratio) {
  if (ratio == 0) return x;
  return Add(name, OpType::kDropout, {x}, DropoutAttributes{ratio, true, StreamOfName(name)});
}

std::string LayerWriter::Reshape(const std::string& name, const std::string& x, Shape shape) {
  return Add(name, OpType::kReshape, {x}, ReshapeAttributes{std::move(shape), false});
}

std::string LayerWriter::Transpose(const std::string& name, const std::string& x, std::vector<int64_t> order) {
  return Add(name, OpType::kTranspose, {x}, TransposeAttributes{std::move(order)});
}

Graph LayerWriter::Finish() {
  graph_.nodes.back().outputs[0] = "logits";
  graph_.outputs = {"logits"};
  return std::move(graph_);
}

}  // namespace lockstep
