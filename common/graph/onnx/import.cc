#include "common/graph/onnx/import.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/graph/graph_editor.h"
#include "common/graph/moved_statistics.h"
#include "common/graph/onnx/export_notes.h"
#include "common/graph/onnx/importer.h"
#include "common/graph/onnx/inline_functions.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/onnx/signature.h"
#include "common/graph/ops/schema.h"
#include "common/status/status_macros.h"
#include "common/tensor/half.h"

namespace lockstep {
namespace {

constexpr int64_t kMinOpset = 1;
constexpr int64_t kMaxOpset = 28;

template <typename T>
InitRule DrawnLike(const Tensor& tensor) {
  const absl::Span<const T> values = tensor.elements<T>();
  double sum = 0, squares = 0;
  for (const T value : values) sum += value;
  const double mean = values.empty() ? 0 : sum / static_cast<double>(values.size());
  for (const T value : values) squares += (value - mean) * (value - mean);
  const double deviation = values.empty() ? 0 : std::sqrt(squares / static_cast<double>(values.size()));
  // Scales lie around 1 and shifts around 0, moved a little by training; weights lie around 0.
  InitRule init;
  if (std::abs(mean) >= deviation) {
    init.value = mean;
  } else {
    init.kind = InitRule::Kind::kNormal;
    init.value = deviation;
  }
  return init;
}

InitRule DrawnAnew(const Tensor& tensor) {
  return tensor.dtype() == DType::kF64 ? DrawnLike<double>(tensor) : DrawnLike<float>(tensor);
}

}  // namespace

OnnxImporter::OnnxImporter(OnnxFile file, const OnnxImportOptions& options)
    : file_(std::move(file)), options_(options) {
  folder_ = std::filesystem::path(file_.path).parent_path().string();
}

absl::StatusOr<ImportedModel> OnnxImporter::Run() {
  LS_RETURN_IF_ERROR(CheckFile());
  LS_ASSIGN_OR_RETURN(FlatModel flat, FlattenModel(file_.model));
  nodes_ = std::move(flat.nodes);
  branch_initializers_ = std::move(flat.initializers);
  branches_ = std::move(flat.branches);
  branch_of_ = std::move(flat.branch_of);
  loops_ = std::move(flat.loops);
  CollectNames();
  LS_RETURN_IF_ERROR(ReadSignature());
  LS_RETURN_IF_ERROR(AddInitializers());
  if (options_.trainable) {
    SplitMerged();
    SortLostParameters();
    LS_RETURN_IF_ERROR(FindFoldedWeights());
    LS_RETURN_IF_ERROR(ChooseMoves());
    LS_RETURN_IF_ERROR(ChooseNorms());
    LS_RETURN_IF_ERROR(ChooseStops());
    FindDrops();
  }
  LS_RETURN_IF_ERROR(AddInputs());
  LS_RETURN_IF_ERROR(AddNodes());
  LS_RETURN_IF_ERROR(AddOutputs());
  WarnOfHalves();
  if (options_.trainable) LS_RETURN_IF_ERROR(AddMoves());
  Finish();
  if (options_.trainable) {
    LS_RETURN_IF_ERROR(KeepUnread());
    AddStepCounts();
    LS_RETURN_IF_ERROR(AddTied());
    LS_RETURN_IF_ERROR(NoteFrozen());
    NameMissing();
    WarnOfAlike();
    model_.notes.detach_lost = has_signature_ ? optimized_ : file_.model.producer_name() == "pytorch";
    WarnOfBlocks();
  }
  model_.graph.values.clear();
  return std::move(model_);
}

absl::Status OnnxImporter::CheckFile() {
  for (const onnx::OperatorSetProto& set : file_.model.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") opset_ = set.version();
  }
  if (opset_ < kMinOpset || opset_ > kMaxOpset) {
    return absl::UnimplementedError(absl::StrCat(file_.path, " is written in opset ", opset_, "; supported are ",
                                                 kMinOpset, " to ", kMaxOpset, ". Export it with opset_version=20"));
  }
  // Our own files follow PyTorch.
  from_pytorch_ = file_.model.producer_name() == "pytorch" || file_.model.producer_name() == "lockstep";
  return absl::OkStatus();
}

void OnnxImporter::CollectNames() {
  for (const onnx::TensorProto& tensor : file_.model.graph().initializer()) taken_names_.insert(tensor.name());
  for (const onnx::TensorProto& tensor : branch_initializers_) taken_names_.insert(tensor.name());
  for (const onnx::ValueInfoProto& input : file_.model.graph().input()) taken_names_.insert(input.name());
  for (const onnx::NodeProto& node : nodes_.node()) {
    taken_names_.insert(node.name());
    taken_names_.insert(node.output().begin(), node.output().end());
  }
}

std::string OnnxImporter::Fresh(std::string name) {
  while (!taken_names_.insert(name).second) name += "_";
  return name;
}

absl::Status OnnxImporter::ReadSignature() {
  std::optional<OnnxSignature> signature = FindSignature(file_.model);
  has_signature_ = signature.has_value();
  if (has_signature_) signature_ = *std::move(signature);
  LS_ASSIGN_OR_RETURN(export_notes_, FindExportNotes(file_.model));
  tied_ = options_.tied;
  if (export_notes_.has_value()) tied_.insert(export_notes_->tied.begin(), export_notes_->tied.end());
  return absl::OkStatus();
}

absl::Status OnnxImporter::AddInitializers() {
  quantisers_ = FindQuantisers();
  std::vector<const onnx::TensorProto*> messages;
  for (const onnx::TensorProto& message : file_.model.graph().initializer()) messages.push_back(&message);
  for (const onnx::TensorProto& message : branch_initializers_) messages.push_back(&message);
  for (const onnx::TensorProto* const each : messages) {
    const onnx::TensorProto& message = *each;
    if (message.name().empty()) return absl::InvalidArgumentError("an initialiser has no name");
    Initializer initializer{&message, false};
    if (options_.trainable && IsFloatingType(message.data_type())) {
      initializer.parameter = has_signature_ ? signature_.parameters.count(message.name()) != 0
                                             : message.dims_size() > 0 && quantisers_.count(message.name()) == 0;
    }
    if (!initializers_.emplace(message.name(), initializer).second) {
      return absl::InvalidArgumentError(absl::StrCat("two initialisers are called '", message.name(), "'"));
    }
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::AddInputs() {
  for (const onnx::ValueInfoProto& input : file_.model.graph().input()) {
    if (initializers_.count(input.name()) != 0) continue;  // old files list them twice
    if (absl::Status added = AddInput(input); !added.ok()) {
      return absl::Status(added.code(), absl::StrCat("input '", input.name(), "': ", added.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::AddInput(const onnx::ValueInfoProto& input) {
  if (input.name().empty()) return absl::InvalidArgumentError("has no name");
  if (values_.count(input.name()) != 0) return absl::InvalidArgumentError("is listed twice");
  if (!input.type().has_tensor_type()) return absl::UnimplementedError("is a sequence, a map or an optional value");
  LS_ASSIGN_OR_RETURN(DType dtype, TensorTypeFromOnnx(input.type().tensor_type().elem_type()));
  dtype = HeldAs(dtype);
  Shape shape;
  bool has_batch = false;
  for (const onnx::DimensionProto& dim : input.type().tensor_type().shape().dim()) {
    const bool symbolic = dim.value_case() != onnx::DimensionProto::kDimValue;
    if (!symbolic) {
      shape.push_back(dim.dim_value());
    } else if (shape.empty() && options_.batch > 0) {
      shape.push_back(options_.batch);
      has_batch = true;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", shape.size(), " is ",
                       dim.dim_param().empty() ? "unknown" : absl::StrCat("'", dim.dim_param(), "'"),
                       "; only the first one may be, as the batch. Export with the others as numbers"));
    }
  }
  LS_RETURN_IF_ERROR(CheckedByteSize(dtype, shape).status());
  if (options_.batch > 0 && !has_batch && !shape.empty() && shape[0] != options_.batch) {
    return absl::InvalidArgumentError(absl::StrCat("the model was exported for batches of ", shape[0],
                                                   ", a pass of the job has ", options_.batch,
                                                   " samples. Export it with ", kExportCall,
                                                   ", or choose train.global_batch_size and "
                                                   "train.logical_shards so that a pass has ",
                                                   shape[0]));
  }
  input_has_batch_[input.name()] = has_batch || (options_.batch > 0 && !shape.empty());
  AppendInput(&model_.graph, {input.name(), dtype, shape});
  Value value{nullptr, nullptr, input.name(), {}, false};
  if (options_.known_inputs != nullptr) {
    const auto known = options_.known_inputs->find(input.name());
    if (known != options_.known_inputs->end()) value.known = std::make_shared<Tensor>(Widened(known->second));
  }
  values_.emplace(input.name(), std::move(value));
  return absl::OkStatus();
}

absl::Status OnnxImporter::AddNodes() {
  for (int at = 0; at < nodes_.node_size();) {
    LS_ASSIGN_OR_RETURN(at, AddNode(at));
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::AddVariable(const std::string& name, VariableKind kind, Tensor value) {
  if (kind != VariableKind::kFrozen && value.dtype() != DType::kF32 && value.dtype() != DType::kF64) {
    if (kind == VariableKind::kStatistic) {
      return absl::InvalidArgumentError(
          absl::StrCat("the model changes its buffer '", name, "', which is ", DTypeName(value.dtype()),
                       "; buffers that change are F32. Keep it as it is with model.constant_buffers: [", name, "]"));
    }
    return absl::InvalidArgumentError(absl::StrCat("parameter '", name, "' is ", DTypeName(value.dtype()),
                                                   "; parameters are F32. Export the model in float32"));
  }
  InitRule init;
  init.kind = InitRule::Kind::kFile;
  init.file_sha256 = file_.sha256;
  init.file_tensor = name;
  if (options_.redraw && kind == VariableKind::kParameter) init = DrawnAnew(value);
  model_.graph.variables.push_back({name, value.dtype(), value.shape(), kind, init});
  model_.graph.values[name] = {value.dtype(), value.shape()};
  if (kind == VariableKind::kParameter) model_.notes.parameters.insert(name);
  model_.initial.emplace(name, std::move(value));
  values_[name] = {nullptr, nullptr, name, {}, false};
  return absl::OkStatus();
}

absl::StatusOr<const OnnxImporter::Value*> OnnxImporter::Find(const std::string& name) {
  if (const auto found = values_.find(name); found != values_.end()) return &found->second;
  const auto initializer = initializers_.find(name);
  if (initializer == initializers_.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reads '", name, "', which nothing before it gives: an initialiser is missing, or the nodes form a cycle"));
  }
  LS_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(*initializer->second.message));
  if (initializer->second.parameter) {
    LS_RETURN_IF_ERROR(AddVariable(name, VariableKind::kParameter, std::move(tensor)));
  } else if (moves_.count(name) != 0) {
    LS_RETURN_IF_ERROR(AddVariable(name, VariableKind::kStatistic, std::move(tensor)));
  } else {
    Define(name, std::move(tensor));
  }
  return &values_.at(name);
}

absl::StatusOr<ValueInfo> OnnxImporter::InfoOf(const std::string& name) {
  LS_ASSIGN_OR_RETURN(const Value* value, Find(name));
  if (value->constant != nullptr) return ValueInfo{value->constant->dtype(), value->constant->shape()};
  if (value->is_sequence) return absl::InvalidArgumentError(absl::StrCat("'", name, "' is a sequence"));
  return model_.graph.values.at(value->name);
}

absl::StatusOr<const Tensor*> OnnxImporter::KnownElements(const std::string& name) {
  const auto initializer = initializers_.find(name);
  if (initializer != initializers_.end() && values_.count(name) == 0 && moves_.count(name) == 0) {
    LS_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(*initializer->second.message));
    Define(name, std::move(tensor));
  }
  LS_ASSIGN_OR_RETURN(const Value* value, Find(name));
  const Tensor* none = nullptr;
  if (value->constant != nullptr) return value->constant.get();
  return value->known != nullptr ? value->known.get() : none;
}

absl::StatusOr<std::string> OnnxImporter::NameInGraph(const std::string& name) {
  if (name.empty()) return name;
  LS_RETURN_IF_ERROR(Find(name).status());
  Value& value = values_.at(name);
  if (value.is_sequence) return absl::UnimplementedError(absl::StrCat("reads the sequence '", name, "'"));
  if (value.name.empty()) {
    // A buffer's own name is that of the tensor in the state.
    const bool buffer = options_.trainable && signature_.buffers.count(name) != 0;
    value.name = buffer ? Fresh(name + ".folded") : NameInTrip(name);
    AppendConstant(&model_.graph, value.name, value.constant->Clone());
  }
  return value.name;
}

void OnnxImporter::Define(const std::string& name, Tensor constant) {
  values_[name] = {std::make_shared<Tensor>(std::move(constant)), nullptr, "", {}, false};
}

void OnnxImporter::Alias(const std::string& name, const std::string& of) { values_[name] = values_.at(of); }

absl::Status OnnxImporter::AddOutputs() {
  Graph& graph = model_.graph;
  std::set<std::string> produced;
  std::map<std::string, std::string> renamed;
  std::set<std::string> read_again;  // by the buffers that become these values
  for (const auto& [buffer, value] : moves_) {
    if (const auto stop = stops_.find(value); stop != stops_.end()) read_again.insert(stop->second);
  }
  for (const Node& node : graph.nodes) produced.insert(node.outputs.begin(), node.outputs.end());
  if (file_.model.graph().output().empty()) return absl::InvalidArgumentError("the model has no output");
  for (const onnx::ValueInfoProto& output : file_.model.graph().output()) {
    if (output.name().empty()) return absl::InvalidArgumentError("an output of the model has no name");
    absl::StatusOr<std::string> name = NameInGraph(output.name());
    if (!name.ok()) {
      return absl::Status(name.status().code(),
                          absl::StrCat("output '", output.name(), "' of the model ", name.status().message()));
    }
    if (const auto found = renamed.find(*name); found != renamed.end()) name = found->second;
    const bool again = std::find(graph.outputs.begin(), graph.outputs.end(), *name) != graph.outputs.end();
    const bool taken = *name != output.name() && produced.count(output.name()) != 0;
    if (taken && std::count(graph.outputs.begin(), graph.outputs.end(), output.name()) == 0) {
      // What a node of the file gives is behind a stop: the output is what lies before the stop no more.
      const std::string before = Fresh(output.name() + ".before");
      RenameValue(&graph, output.name(), before);
      produced.erase(output.name());
      produced.insert(before);
    }
    if (produced.count(*name) == 0 || again || taken || read_again.count(*name) != 0) {
      // An input, a constant, one output under two names, or a value that keeps its name: a node of its own gives it.
      const std::string copy = produced.count(output.name()) == 0 && *name != output.name()
                                   ? output.name()
                                   : Fresh(absl::StrCat(*name, ".output"));
      LS_RETURN_IF_ERROR(AppendNode(
          &graph, {copy, OpType::kReshape, {*name}, {copy}, ReshapeAttributes{graph.values.at(*name).shape, true}}));
      graph.outputs.push_back(copy);
      produced.insert(copy);
      continue;
    }
    if (*name != output.name()) {
      RenameValue(&graph, *name, output.name());
      renamed[*name] = output.name();
      produced.erase(*name);
      produced.insert(output.name());
    }
    graph.outputs.push_back(output.name());
  }
  return absl::OkStatus();
}

void OnnxImporter::Finish() {
  Graph& graph = model_.graph;
  const std::vector<std::string> outputs = graph.outputs;
  for (const std::string& moved : MovedStatistics(graph)) graph.outputs.push_back(MovedValueName(moved));
  RemoveDeadCode(&graph);
  graph.outputs = outputs;
  std::set<std::string> used;
  for (const Node& node : graph.nodes) used.insert(node.inputs.begin(), node.inputs.end());
  for (Variable& variable : graph.variables) {
    if (variable.kind != VariableKind::kParameter || used.count(variable.name) != 0) continue;
    model_.warnings.push_back(absl::StrCat("parameter '", variable.name, "' has no influence and is not trained"));
    variable.kind = VariableKind::kFrozen;
  }
  for (GraphInput& input : graph.inputs) {
    if (input_has_batch_[input.name]) input.shape[0] = kBatchDim;
  }
}

absl::StatusOr<ImportedModel> ImportOnnx(OnnxFile file, const OnnxImportOptions& options) {
  const std::string path = file.path;
  absl::StatusOr<ImportedModel> model = OnnxImporter(std::move(file), options).Run();
  if (model.ok()) return model;
  return absl::Status(model.status().code(), absl::StrCat(path, ": ", model.status().message()));
}

}  // namespace lockstep
