// Batch normalisations: which train by the batch, and what the others are.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/parameter_patterns.h"
#include "common/graph/state_names.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr int kStatisticInputs[] = {3, 4};

// Before opset 14 a batch normalisation that trains gives its statistics; since then it says so.
bool NodeSaysTraining(const onnx::NodeProto& node) {
  if (const auto* mode = FindAttribute(node, "training_mode")) return mode->i() != 0;
  return OutputsOf(node).size() > 1;
}

}  // namespace

// Whether anything but a batch normalisation shows that the model was exported while it trained.
bool OnnxImporter::SaysTraining() const {
  if (!signature_.mutations.empty()) return true;
  std::map<std::string, const onnx::TensorProto*> constants;
  for (const auto& [name, initializer] : initializers_) constants[name] = initializer.message;
  for (const onnx::NodeProto& node : nodes_.node()) {
    const auto* value = node.op_type() == "Constant" ? FindAttribute(node, "value") : nullptr;
    if (value != nullptr && node.output_size() == 1) constants[node.output(0)] = &value->t();
  }
  return std::any_of(nodes_.node().begin(), nodes_.node().end(), [&](const onnx::NodeProto& node) {
    if (node.op_type() != "Dropout" || node.input_size() < 3) return false;
    const auto mode = constants.find(node.input(2));
    if (mode == constants.end() || mode->second->data_type() != onnx::BOOL) return false;
    const absl::StatusOr<Tensor> tensor = ReadOnnxTensor(*mode->second, folder_);
    return tensor.ok() && tensor->num_elements() == 1 && tensor->elements<bool>()[0];
  });
}

// Statistics that layers read as their weights or biases.
void OnnxImporter::FindMergedStatistics() {
  static const auto* const kLayers =
      new std::set<std::string>({"BatchNormalization", "InstanceNormalization", "LayerNormalization",
                                 "GroupNormalization", "RMSNormalization", "Gemm", "Conv", "ConvTranspose", "PRelu"});
  std::set<std::string> statistics;
  for (const onnx::NodeProto& node : nodes_.node()) {
    if (node.op_type() == "BatchNormalization" && node.input_size() >= 5) {
      statistics.insert({node.input(3), node.input(4)});
    }
  }
  for (const onnx::NodeProto& node : nodes_.node()) {
    if (kLayers->count(node.op_type()) == 0) continue;
    for (int i = 1; i < std::min(node.input_size(), 3); ++i) {
      if (statistics.count(node.input(i)) != 0) merged_statistics_.insert(node.input(i));
    }
  }
}

// PyTorch's newer exporter writes the same node whether the layer trains or not; what tells is whether the program
// changes the layer's statistics. A file in which nothing trains is most often of model.eval(), and says nothing about
// training.
absl::Status OnnxImporter::ChooseNorms() {
  FindMergedStatistics();
  std::vector<std::string> layers;
  std::map<std::string, std::string> means;  // by layer
  std::set<std::string> training;
  for (const onnx::NodeProto& node : nodes_.node()) {
    if (node.op_type() != "BatchNormalization" || node.input_size() < 5) continue;
    const std::string& mean = node.input(3);
    if (initializers_.count(mean) == 0 || !means.emplace(NormOf(mean), mean).second) continue;
    layers.push_back(NormOf(mean));
    const bool trains = has_signature_ ? signature_.mutations.count(mean) != 0 : NodeSaysTraining(node);
    if (trains) training.insert(NormOf(mean));
  }
  const std::vector<std::string>& chosen = options_.batch_norm;
  const bool all = chosen == std::vector<std::string>{"train"}, none = chosen == std::vector<std::string>{"freeze"};
  std::set<std::string> frozen;
  if (!all && !none) {
    LS_ASSIGN_OR_RETURN(frozen, MatchNames(layers, chosen, "model.batch_norm", "batch normalisation"));
  }
  const bool ours = file_.model.producer_name() == "lockstep";  // onnx_writer.h: never says that a norm trains
  const bool says = !training.empty() || (!ours && SaysTraining());
  for (const std::string& layer : layers) {
    const bool trains = all || (!none && frozen.count(layer) == 0 && (!says || training.count(layer) != 0));
    if (!trains) frozen_norms_.insert(means.at(layer));
  }
  if (!says && chosen.empty() && !layers.empty() && !ours) {
    model_.warnings.push_back(absl::StrCat(
        "the file is as of model.eval(): none of its ", layers.size(),
        " batch normalisations says that it trains. All will normalise by the batch and move their statistics; "
        "model.batch_norm: train says that this is meant, freeze keeps the statistics, patterns keep some"));
  }
  return absl::OkStatus();
}

// A layer whose statistics the model computes itself, such as one with track_running_stats=False: what it is made of,
// so that gradients go through the statistics too.
class OnnxImporter::GivenStatistics : private Expansion {
 public:
  GivenStatistics(OnnxImporter* importer, const Call& call) : Expansion(importer, call) {}

  absl::Status Run(double epsilon) {
    LS_ASSIGN_OR_RETURN(const ValueInfo x, importer_->InfoOf(call_.node->input(0)));
    if (x.shape.size() < 2) return absl::InvalidArgumentError("its input has no channels");
    Shape per_channel(x.shape.size(), 1);
    per_channel[1] = x.shape[1];
    std::vector<std::string> channel;
    for (int i = 1; i < 5; ++i) channel.push_back(Reshape(call_.node->input(i), per_channel));
    const std::string little = importer_->Fresh(call_.label + ".epsilon");
    importer_->Define(little, x.dtype == DType::kF64 ? Tensor::Of<double>({}, {epsilon})
                                                     : Tensor::Of<float>({}, {static_cast<float>(epsilon)}));
    const std::string deviation = Add(OpType::kSqrt, {Add(OpType::kAdd, {channel[3], little})});
    const std::string centred = Add(OpType::kSub, {call_.node->input(0), channel[2]});
    const std::string scaled = Add(OpType::kMul, {centred, Add(OpType::kDiv, {channel[0], deviation})});
    Give(0, Add(OpType::kAdd, {scaled, channel[1]}));
    return status();
  }
};

// OK where the nodes before this one compute both statistics. A tensor of the model under another name is a statistic,
// which no gradient moves, or a parameter, which is none.
absl::Status OnnxImporter::CheckGivenStatistics(const std::vector<std::string>& inputs) {
  for (const size_t i : kStatisticInputs) {
    LS_ASSIGN_OR_RETURN(const Value* value, Find(inputs[i]));
    if (value->constant == nullptr && model_.initial.count(value->name) == 0) continue;
    const bool moves = value->constant == nullptr && !value->name.empty() && statistics_.count(value->name) != 0;
    return absl::UnimplementedError(
        moves ? absl::StrCat("normalises by '", inputs[i], "', the statistic '", value->name,
                             "' of another call: a layer that is called twice in a step cannot train by the batch. "
                             "Give each call a layer of its own, or export the model with this one in eval()")
              : absl::StrCat("its statistic '", inputs[i], "' is no initialiser of its own: it cannot be trained. ",
                             "Export the model with ", kExportCall));
  }
  return absl::OkStatus();
}

// InvalidArgument where a statistic is a weight, too: it would move by the batch, and get no gradient.
absl::Status OnnxImporter::CheckOwnStatistic(const std::string& name) const {
  const bool weight = signature_.parameters.count(name) != 0 || merged_statistics_.count(name) != 0;
  if (!weight) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "its statistic '", name, "' is also a weight or bias: whatever wrote the file merged tensors that begin alike. ",
      "Export the model with ", kExportCall, ", which keeps them apart"));
}

absl::Status OnnxImporter::ReadBatchNormalization(Call& call) {
  LS_ASSIGN_OR_RETURN(call.attributes, ReadAttributes(*call.node));
  for (const char* old : {"spatial", "is_test", "consumed_inputs"}) call.attributes.erase(old);
  const std::vector<std::string> inputs = InputsOf(*call.node);
  if (inputs.size() != 5) return absl::InvalidArgumentError("takes five inputs");
  if (options_.trainable && branch_ >= 0) {
    return absl::UnimplementedError(
        "stands in a branch of an If or in a loop, and its statistics move once per step; take it out of there, or "
        "use a normalisation without statistics");
  }
  if (!options_.trainable) {
    if (OutputsOf(*call.node).size() > 1) return ReadMovedStatistics(call);
    return Emit(call, OpType::kBatchNormalization, inputs, {call.node->output(0)});
  }
  if (initializers_.count(inputs[3]) == 0 && initializers_.count(inputs[4]) == 0 && OutputsOf(*call.node).size() == 1) {
    LS_RETURN_IF_ERROR(CheckGivenStatistics(inputs));
    LS_ASSIGN_OR_RETURN(const double epsilon, FloatOf(call.attributes, "epsilon", 1e-5));
    return GivenStatistics(this, call).Run(epsilon);
  }
  const bool trains = frozen_norms_.count(inputs[3]) == 0;
  for (const size_t i : kStatisticInputs) {
    const auto initializer = initializers_.find(inputs[i]);
    LS_RETURN_IF_ERROR(CheckOwnStatistic(inputs[i]));
    if (!trains && initializer != initializers_.end() && values_.count(inputs[i]) != 0) continue;  // its second call
    if (initializer == initializers_.end() || values_.count(inputs[i]) != 0) {
      return absl::UnimplementedError(
          absl::StrCat("its statistic '", inputs[i], "' is no initialiser of its own: it cannot be trained"));
    }
    LS_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(*initializer->second.message));
    const VariableKind kind = trains ? VariableKind::kStatistic : VariableKind::kFrozen;
    LS_RETURN_IF_ERROR(AddVariable(inputs[i], kind, std::move(tensor)));
    statistics_.insert(inputs[i]);
    if (options_.redraw) {
      model_.graph.variables.back().init = {InitRule::Kind::kConstant, i == 3 ? 0.0 : 1.0, 0, "", ""};
    }
  }
  call.attributes["training_mode"] = int64_t{trains};
  call.attributes["unbiased_running_var"] = int64_t{from_pytorch_};
  return Emit(call, OpType::kBatchNormalization, inputs, {call.node->output(0)});
}

// A model that is only run and gives its statistics as outputs: momentum * the old + (1 - momentum) * those of the
// batch.
absl::Status OnnxImporter::ReadMovedStatistics(Call& call) {
  const std::vector<std::string> inputs = InputsOf(*call.node);
  const std::vector<std::string> outputs = OutputsOf(*call.node);
  if (outputs.size() != 3 || IntOf(call.attributes, "training_mode", 0) != 1) {
    return absl::UnimplementedError("its statistics are outputs, as before opset 14");
  }
  const std::string label = call.label;
  LS_ASSIGN_OR_RETURN(const double kept, FloatOf(call.attributes, "momentum", 0.9));
  const std::vector<std::string> moves = {Fresh(label + ".mean"), Fresh(label + ".variance")};
  LS_RETURN_IF_ERROR(Emit(call, OpType::kBatchNormTraining, {inputs[0], inputs[1], inputs[2]},
                          {outputs[0], moves[0], Fresh(label + ".inv_std"), moves[1]}));
  for (size_t i = 0; i < 2; ++i) {
    const std::string old = Fresh(moves[i] + ".kept"), moved = Fresh(moves[i] + ".moved");
    const Call keep{call.node, {{"factor", kept}}, old};
    LS_RETURN_IF_ERROR(Emit(keep, OpType::kScale, {inputs[3 + i]}, {old}));
    const Call move{call.node, {{"factor", 1.0 - kept}}, moved};
    LS_RETURN_IF_ERROR(Emit(move, OpType::kScale, {moves[i]}, {moved}));
    const Call sum{call.node, {}, outputs[1 + i]};
    LS_RETURN_IF_ERROR(Emit(sum, OpType::kAdd, {old, moved}, {outputs[1 + i]}));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
