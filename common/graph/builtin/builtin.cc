#include "common/graph/builtin/builtin.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/random/random.h"
#include "common/status/status_macros.h"
#include "common/tensor/shape.h"

namespace lockstep {
namespace {

// Writes layers one after the other; each reads what the one before gave.
class LayerWriter {
 public:
  explicit LayerWriter(const GraphInput& input) : last_(input.name) { graph_.inputs.push_back(input); }

  // torch.nn.Linear
  void Linear(const std::string& name, int64_t in, int64_t out) {
    AddWeights(name, {out, in}, in);
    AddNode(name, OpType::kGemm, {last_, name + ".weight", name + ".bias"}, GemmAttributes{1.0, 1.0, false, true});
  }

  // torch.nn.Conv2d with a square kernel and stride 1
  void Conv2d(const std::string& name, int64_t in, int64_t out, int64_t kernel, int64_t pad) {
    AddWeights(name, {out, in, kernel, kernel}, in * kernel * kernel);
    ConvAttributes conv;
    conv.kernel_shape = {kernel, kernel};
    conv.pads = {pad, pad, pad, pad};
    AddNode(name, OpType::kConv, {last_, name + ".weight", name + ".bias"}, conv);
  }

  // torch.nn.MaxPool2d(2)
  void MaxPool2(const std::string& name) {
    PoolAttributes pool;
    pool.kernel_shape = {2, 2};
    pool.strides = {2, 2};
    AddNode(name, OpType::kMaxPool, {last_}, pool);
  }

  // torch.nn.BatchNorm1d
  void BatchNorm(const std::string& name, int64_t channels) {
    AddConstantVariable(name + ".weight", channels, 1.0, VariableKind::kParameter);
    AddConstantVariable(name + ".bias", channels, 0.0, VariableKind::kParameter);
    AddConstantVariable(name + ".running_mean", channels, 0.0, VariableKind::kStatistic);
    AddConstantVariable(name + ".running_var", channels, 1.0, VariableKind::kStatistic);
    AddNode(name, OpType::kBatchNormalization,
            {last_, name + ".weight", name + ".bias", name + ".running_mean", name + ".running_var"},
            BatchNormAttributes{1e-5, 0.9, true, true});
  }

  void Dropout(const std::string& name, double ratio) {
    AddNode(name, OpType::kDropout, {last_}, DropoutAttributes{ratio, true, StreamOfName(name)});
  }

  void Simple(const std::string& name, OpType op) { AddNode(name, op, {last_}, NoAttributes{}); }
  void Flatten(const std::string& name) { AddNode(name, OpType::kFlatten, {last_}, FlattenAttributes{1}); }

  // The graph; its last layer's output is called "logits".
  Graph Finish() {
    graph_.nodes.back().outputs[0] = "logits";
    graph_.outputs = {"logits"};
    return std::move(graph_);
  }

 private:
  void AddNode(const std::string& name, OpType op, std::vector<std::string> inputs, OpAttributes attributes) {
    last_ = name + ".out";
    graph_.nodes.push_back({name, op, std::move(inputs), {last_}, std::move(attributes)});
  }

  // torch.nn's default for weight and bias: uniform in +-1 / sqrt(fan_in).
  void AddWeights(const std::string& name, Shape shape, int64_t fan_in) {
    InitRule init;
    init.kind = InitRule::Kind::kKaimingUniform;
    init.value = std::sqrt(1.0 / 3.0);
    init.fan_in = fan_in;
    const int64_t out = shape[0];
    graph_.variables.push_back({name + ".weight", DType::kF32, std::move(shape), VariableKind::kParameter, init});
    graph_.variables.push_back({name + ".bias", DType::kF32, {out}, VariableKind::kParameter, init});
  }

  void AddConstantVariable(std::string name, int64_t size, double value, VariableKind kind) {
    InitRule init;
    init.value = value;
    graph_.variables.push_back({std::move(name), DType::kF32, {size}, kind, init});
  }

  Graph graph_;
  std::string last_;
};

absl::Status CheckInput(const std::string& model, const GraphInput& input) {
  if (input.dtype != DType::kF32 || input.shape.size() < 2 || input.shape[0] != kBatchDim) {
    return absl::InvalidArgumentError(absl::StrCat("model '", model, "' takes float32 inputs [batch, ...], but input '",
                                                   input.name, "' is ", DTypeName(input.dtype), " ",
                                                   ShapeString(input.shape)));
  }
  return CheckedNumElements(absl::MakeConstSpan(input.shape).subspan(1)).status();
}

absl::StatusOr<Graph> BuildLenet(const ModelSpec& model, const GraphInput& input) {
  LS_RETURN_IF_ERROR(CheckInput("lenet", input));
  // conv1 keeps the size, each pool halves it, conv2 takes 4.
  const auto after = [](int64_t size) { return (size / 2 - 4) / 2; };
  if (input.shape.size() != 4 || after(input.shape[2]) < 1 || after(input.shape[3]) < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model 'lenet' takes images [batch, channels, height, width] of at least 12 x 12, but input '",
                     input.name, "' has shape ", ShapeString(input.shape),
                     ". Give the input's shape with its channels, e.g. [1, 28, 28], or use model 'mlp'"));
  }
  LayerWriter layers(input);
  layers.Conv2d("conv1", input.shape[1], 6, 5, 2);
  layers.Simple("relu1", OpType::kRelu);
  layers.MaxPool2("pool1");
  layers.Conv2d("conv2", 6, 16, 5, 0);
  layers.Simple("relu2", OpType::kRelu);
  layers.MaxPool2("pool2");
  layers.Flatten("flatten");
  layers.Linear("fc1", 16 * after(input.shape[2]) * after(input.shape[3]), 120);
  layers.Simple("relu3", OpType::kRelu);
  layers.Linear("fc2", 120, 84);
  layers.Simple("relu4", OpType::kRelu);
  layers.Linear("fc3", 84, model.outputs);
  return layers.Finish();
}

absl::StatusOr<OpType> Activation(const std::string& name) {
  if (name == "relu") return OpType::kRelu;
  if (name == "sigmoid") return OpType::kSigmoid;
  if (name == "tanh") return OpType::kTanh;
  return absl::InvalidArgumentError(
      absl::StrCat("model 'mlp': unknown activation '", name, "'; there are relu, sigmoid and tanh"));
}

absl::StatusOr<Graph> BuildMlp(const ModelSpec& model, const GraphInput& input) {
  LS_RETURN_IF_ERROR(CheckInput("mlp", input));
  LS_ASSIGN_OR_RETURN(const OpType activation, Activation(model.activation));
  if (!(model.dropout >= 0 && model.dropout < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("model 'mlp': dropout ", model.dropout, " is outside of [0, 1)"));
  }
  LayerWriter layers(input);
  int64_t width = NumElements(absl::MakeConstSpan(input.shape).subspan(1));
  if (input.shape.size() > 2) layers.Flatten("flatten");
  for (size_t i = 0; i < model.hidden_sizes.size(); ++i) {
    const std::string n = absl::StrCat(i + 1);
    const int64_t size = model.hidden_sizes[i];
    if (size < 1)
      return absl::InvalidArgumentError(absl::StrCat("model 'mlp': hidden size ", size, " is not positive"));
    layers.Linear("fc" + n, width, size);
    if (model.batch_norm) layers.BatchNorm("bn" + n, size);
    layers.Simple("act" + n, activation);
    if (model.dropout > 0) layers.Dropout("dropout" + n, model.dropout);
    width = size;
  }
  layers.Linear(absl::StrCat("fc", model.hidden_sizes.size() + 1), width, model.outputs);
  return layers.Finish();
}

}  // namespace

std::vector<std::string> ArchitectureNames() { return {"lenet", "mlp"}; }

absl::StatusOr<Graph> BuildArchitecture(const ModelSpec& model, const GraphInput& input) {
  if (model.outputs < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", model.architecture, "' has ", model.outputs, " outputs; it needs at least one"));
  }
  if (model.architecture == "lenet") return BuildLenet(model, input);
  if (model.architecture == "mlp") return BuildMlp(model, input);
  return absl::InvalidArgumentError(absl::StrCat("unknown model '", model.architecture, "'; built in are ",
                                                 absl::StrJoin(ArchitectureNames(), ", ")));
}

}  // namespace lockstep
