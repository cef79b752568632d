// Where gradients stop, and buffers that the model changes in `forward`: their new values are what it computes, and no
// gradient goes through them, since the next step begins with them as given.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/graph_editor.h"
#include "common/graph/moved_statistics.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/schema.h"
#include "common/graph/parameter_patterns.h"
#include "common/graph/state_names.h"
#include "common/status/status_macros.h"

namespace lockstep {
// Statistics of batch normalisations, and counts of steps, have rules of their own.
absl::Status OnnxImporter::ChooseMoves() {
  if (!signature_.changed_parameters.empty()) {
    const std::string& name = *signature_.changed_parameters.begin();
    return absl::UnimplementedError(absl::StrCat(
        "forward changes the parameter '", name,
        "' itself, beside the optimizer, which cannot be trained. Let forward compute with a changed copy, "
        "such as self.weight.clamp(-1, 1) instead of self.weight.clamp_(-1, 1)"));
  }
  std::set<std::string> statistics;
  for (const onnx::NodeProto& node : nodes_.node()) {
    if (node.op_type() != "BatchNormalization" || node.input_size() < 5) continue;
    statistics.insert({node.input(3), node.input(4)});
  }
  std::vector<std::string> changed;
  for (const auto& [buffer, value] : signature_.mutations) {
    if (statistics.count(buffer) != 0 || absl::EndsWith(buffer, kStepCountSuffix)) continue;
    if (!MergedNormOf(buffer).empty()) continue;
    changed.push_back(buffer);
  }
  LS_ASSIGN_OR_RETURN(const std::set<std::string> kept,
                      MatchNames(changed, options_.constant_buffers, "model.constant_buffers", "buffer that changes"));
  for (const std::string& buffer : changed) {
    const std::string& value = signature_.mutations.at(buffer);
    stopped_.insert(value);
    if (kept.count(buffer) == 0) moves_.emplace(buffer, value);
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::ChooseStops() {
  if (options_.stop_gradient.empty()) return absl::OkStatus();
  std::vector<std::string> values;
  for (const onnx::NodeProto& node : nodes_.node()) {
    for (const std::string& output : node.output()) {
      if (!output.empty()) values.push_back(output);
    }
  }
  LS_ASSIGN_OR_RETURN(const std::set<std::string> matched,
                      MatchNames(values, options_.stop_gradient, "model.stop_gradient", "value of the file"));
  stopped_.insert(matched.begin(), matched.end());
  return absl::OkStatus();
}

// Readers of the file's value read it as given.
absl::Status OnnxImporter::StopBehind(const std::string& value) {
  LS_ASSIGN_OR_RETURN(const Value* found, Find(value));
  if (found->is_sequence) {
    const std::vector<std::string> parts = found->sequence;
    for (const std::string& part : parts) LS_RETURN_IF_ERROR(StopOne(part).status());
    model_.notes.stops.push_back(value);
    return absl::OkStatus();
  }
  LS_ASSIGN_OR_RETURN(const bool stopped, StopOne(value));
  if (stopped) model_.notes.stops.push_back(value);
  return absl::OkStatus();
}

// False for what no gradient goes through anyway.
absl::StatusOr<bool> OnnxImporter::StopOne(const std::string& value) {
  LS_ASSIGN_OR_RETURN(const Value* found, Find(value));
  if (found->constant != nullptr) return false;
  const std::string source = found->name;
  if (!IsFloating(model_.graph.values.at(source).dtype)) return false;
  const std::string name = Fresh(value + ".stopped");
  stops_[value] = name;
  LS_RETURN_IF_ERROR(AppendNode(&model_.graph, {name, OpType::kIdentity, {source}, {name}, NoAttributes{}}));
  std::shared_ptr<const Tensor> known = found->known;
  values_[value] = {nullptr, std::move(known), name, {}, false};
  return true;
}

absl::Status OnnxImporter::StopOutputs(const onnx::NodeProto& node) {
  for (const std::string& output : node.output()) {
    if (stopped_.count(output) == 0 || stops_.count(output) != 0) continue;
    if (values_.count(output) == 0) {
      return absl::UnimplementedError(
          absl::StrCat("its output '", output,
                       "' is not computed here, so no gradient can be stopped there. Take it out "
                       "of model.stop_gradient"));
    }
    LS_RETURN_IF_ERROR(StopBehind(output));
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::AddMoves() {
  for (const auto& [buffer, value] : moves_) LS_RETURN_IF_ERROR(AddMove(buffer, value));
  return absl::OkStatus();
}

// Exporters leave out what no output of the model needs, a buffer's new value among it.
absl::Status OnnxImporter::AddMove(const std::string& buffer, const std::string& value) {
  const auto moved = stops_.find(value);
  std::vector<Variable>& variables = model_.graph.variables;
  const auto variable =
      std::find_if(variables.begin(), variables.end(), [&](const auto& v) { return v.name == buffer; });
  if (moved == stops_.end()) {
    if (variable != variables.end()) {
      return absl::UnimplementedError(absl::StrCat(
          "forward changes the buffer '", buffer, "' and reads it, and the exporter left out what it becomes ('", value,
          "'), since no output needs that. Let forward return the new value too, or keep the buffer as it is with "
          "model.constant_buffers: [",
          buffer, "]"));
    }
    model_.warnings.push_back(absl::StrCat("forward changes the buffer '", buffer,
                                           "', and the file does not hold how: it does not move here. Nothing that is "
                                           "trained depends on it"));
    return absl::OkStatus();
  }
  const ValueInfo info = model_.graph.values.at(moved->second);
  if (info.dtype != DType::kF32) {
    return absl::UnimplementedError(absl::StrCat("forward changes the buffer '", buffer, "', which is ",
                                                 DTypeName(info.dtype),
                                                 "; buffers that change are F32. Keep it as it is with "
                                                 "model.constant_buffers: [",
                                                 buffer, "]"));
  }
  if (variable != variables.end()) {
    variable->kind = VariableKind::kStatistic;
  } else if (const auto initializer = initializers_.find(buffer); initializer != initializers_.end()) {
    LS_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(*initializer->second.message));
    LS_RETURN_IF_ERROR(AddVariable(buffer, VariableKind::kStatistic, std::move(tensor)));
  } else {
    // Nobody reads what it was before, so the file does not hold it: zeros, until the first step.
    variables.push_back({buffer, info.dtype, info.shape, VariableKind::kStatistic, {}});
  }
  if (signature_.buffers.count(buffer) == 0) {
    model_.warnings.push_back(absl::StrCat("forward changes the buffer '", buffer,
                                           "', which is persistent=False: it moves here, and checkpoints hold it, so "
                                           "that a resumed job goes on with it. The model takes them with "
                                           "load_state_dict(..., strict=False)"));
  }
  const std::string name = Fresh(buffer + ".moved");
  return AppendNode(&model_.graph,
                    {name, OpType::kIdentity, {moved->second}, {MovedValueName(buffer)}, NoAttributes{}});
}

// Of blocks that the exporter traces apart, the file says where they were and not whether gradients went through.
void OnnxImporter::WarnOfBlocks() {
  std::set<std::string> within, leaving;
  for (const onnx::NodeProto& node : nodes_.node()) {
    if (ComesFromBlock(node)) within.insert(node.output().begin(), node.output().end());
  }
  for (const onnx::NodeProto& node : nodes_.node()) {
    if (ComesFromBlock(node)) continue;
    for (const std::string& input : node.input()) {
      if (within.count(input) != 0 && !input.empty()) leaving.insert(input);
    }
  }
  if (leaving.empty()) return;
  std::set<std::string> differentiated;
  for (const Variable& variable : model_.graph.variables) {
    if (variable.kind == VariableKind::kParameter) differentiated.insert(variable.name);
  }
  for (const Node& node : model_.graph.nodes) {
    const auto reaches = [&](const std::string& input) { return differentiated.count(input) != 0; };
    if (node.op == OpType::kIdentity || std::none_of(node.inputs.begin(), node.inputs.end(), reaches)) continue;
    differentiated.insert(node.outputs.begin(), node.outputs.end());
  }
  std::vector<std::string> open;
  for (const std::string& value : leaving) {
    const auto found = values_.find(value);
    if (found != values_.end() && differentiated.count(found->second.name) != 0) open.push_back(value);
  }
  if (open.empty()) return;
  model_.warnings.push_back(absl::StrCat(
      "the values ", ListNames(open),
      " come from a block such as torch.no_grad() or torch.autocast(), and the file does "
      "not say which: gradients go through them here. If it was no_grad, write .detach() before the export, or set "
      "model.stop_gradient: [",
      absl::StrJoin(open, ", "), "]"));
}

}  // namespace lockstep
