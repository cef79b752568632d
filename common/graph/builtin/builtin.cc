#include "common/graph/builtin/builtin.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/builtin/architectures.h"
#include "common/graph/builtin/layer_writer.h"
#include "common/status/status_macros.h"
#include "common/tensor/shape.h"

namespace lockstep {
namespace {

using Builder = absl::StatusOr<Graph> (*)(const ModelSpec& model, const GraphInput& input);

struct Row {
  const char* name;
  Builder build;
};
constexpr Row kRows[] = {{"bert", BuildBert},       {"gpt2", BuildGpt2},       {"lenet", BuildLenet},
                         {"mlp", BuildMlp},         {"resnet18", BuildResnet}, {"resnet34", BuildResnet},
                         {"resnet50", BuildResnet}, {"vit", BuildVit}};

absl::StatusOr<OpType> Activation(const std::string& name) {
  if (name == "relu") return OpType::kRelu;
  if (name == "sigmoid") return OpType::kSigmoid;
  if (name == "tanh") return OpType::kTanh;
  return absl::InvalidArgumentError(
      absl::StrCat("model 'mlp': unknown activation '", name, "'; there are relu, sigmoid and tanh"));
}

}  // namespace

absl::Status CheckFloatInput(const ModelSpec& model, const GraphInput& input) {
  if (input.dtype != DType::kF32 || input.shape.size() < 2 || input.shape[0] != kBatchDim) {
    return absl::InvalidArgumentError(absl::StrCat("model '", model.architecture,
                                                   "' takes float32 inputs [batch, ...], but input '", input.name,
                                                   "' is ", DTypeName(input.dtype), " ", ShapeString(input.shape)));
  }
  return CheckedNumElements(absl::MakeConstSpan(input.shape).subspan(1)).status();
}

absl::Status CheckImages(const ModelSpec& model, const GraphInput& input, int64_t smallest) {
  LS_RETURN_IF_ERROR(CheckFloatInput(model, input));
  if (input.shape.size() == 4 && input.shape[2] >= smallest && input.shape[3] >= smallest) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("model '", model.architecture, "' takes images [batch, channels, height, width] of at least ",
                   smallest, " x ", smallest, ", but input '", input.name, "' has shape ", ShapeString(input.shape),
                   ". Give the input's shape with its channels, e.g. [1, 28, 28], or use model 'mlp'"));
}

absl::Status CheckDropout(const ModelSpec& model) {
  if (model.dropout >= 0 && model.dropout < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("model '", model.architecture, "': dropout ", model.dropout, " is outside of [0, 1)"));
}

absl::StatusOr<Graph> BuildLenet(const ModelSpec& model, const GraphInput& input) {
  LS_RETURN_IF_ERROR(CheckImages(model, input, 12));
  // conv1 keeps the size, each pool halves it, conv2 takes 4.
  const auto after = [](int64_t size) { return (size / 2 - 4) / 2; };
  const int64_t flat = 16 * after(input.shape[2]) * after(input.shape[3]);
  LayerWriter layers(input);
  std::string x = layers.Conv2d("conv1", input.name, {6, input.shape[1], 5, 5}, 1, 2, TorchInit(input.shape[1] * 25));
  x = layers.MaxPool("pool1", layers.Add("relu1", OpType::kRelu, {x}), 2, 2, 0);
  x = layers.Conv2d("conv2", x, {16, 6, 5, 5}, 1, 0, TorchInit(150));
  x = layers.MaxPool("pool2", layers.Add("relu2", OpType::kRelu, {x}), 2, 2, 0);
  x = layers.Add("flatten", OpType::kFlatten, {x}, FlattenAttributes{1});
  x = layers.Add("relu3", OpType::kRelu, {layers.Linear("fc1", x, flat, 120, TorchInit(flat))});
  x = layers.Add("relu4", OpType::kRelu, {layers.Linear("fc2", x, 120, 84, TorchInit(120))});
  layers.Linear("fc3", x, 84, model.outputs, TorchInit(84));
  return layers.Finish();
}

absl::StatusOr<Graph> BuildMlp(const ModelSpec& model, const GraphInput& input) {
  LS_RETURN_IF_ERROR(CheckFloatInput(model, input));
  LS_RETURN_IF_ERROR(CheckDropout(model));
  LS_ASSIGN_OR_RETURN(const OpType activation, Activation(model.activation));
  LayerWriter layers(input);
  std::string x = input.name;
  int64_t width = NumElements(absl::MakeConstSpan(input.shape).subspan(1));
  if (input.shape.size() > 2) x = layers.Add("flatten", OpType::kFlatten, {x}, FlattenAttributes{1});
  for (size_t i = 0; i < model.hidden_sizes.size(); ++i) {
    const std::string n = absl::StrCat(i + 1);
    const int64_t size = model.hidden_sizes[i];
    if (size < 1) {
      return absl::InvalidArgumentError(absl::StrCat("model 'mlp': hidden size ", size, " is not positive"));
    }
    x = layers.Linear("fc" + n, x, width, size, TorchInit(width));
    if (model.batch_norm) x = layers.BatchNorm("bn" + n, x, size);
    x = layers.Add("act" + n, activation, {x});
    x = layers.Dropout("dropout" + n, x, model.dropout);
    width = size;
  }
  layers.Linear(absl::StrCat("fc", model.hidden_sizes.size() + 1), x, width, model.outputs, TorchInit(width));
  return layers.Finish();
}

std::vector<std::string> ArchitectureNames() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

absl::StatusOr<Graph> BuildArchitecture(const ModelSpec& model, const GraphInput& input) {
  if (model.outputs < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", model.architecture, "' has ", model.outputs, " outputs; it needs at least one"));
  }
  for (const Row& row : kRows) {
    if (model.architecture == row.name) return row.build(model, input);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown model '", model.architecture, "'; built in are ",
                                                 absl::StrJoin(ArchitectureNames(), ", ")));
}

}  // namespace lockstep
