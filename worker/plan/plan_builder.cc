#include "worker/plan/plan_builder.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/passes/training_graph.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "worker/plan/early_gradients.h"
#include "worker/plan/pad_classes.h"
#include "worker/plan/rewrite.h"

namespace lockstep::worker {
namespace {

// Passes on a failure with the node's name in front.
absl::Status AtNode(const Node& node, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("node '", node.name, "' (", OpName(node.op), "): ", status.message()));
}

// Copies of weights in another layout are made in the pass where that costs little beside what is computed from them.
constexpr int64_t kLeastPlaces = 256;

// Ops whose result is the input's bytes under another shape.
bool IsView(OpType op) {
  switch (op) {
    case OpType::kFlatten:
    case OpType::kReshape:
    case OpType::kSqueeze:
    case OpType::kUnsqueeze:
    case OpType::kDropout:
    case OpType::kIdentity:
      return true;
    default:
      return false;
  }
}

// Ops behind which some device fuses a ReLU.
bool MayFuseRelu(OpType op) {
  return op == OpType::kConv || op == OpType::kGemm || op == OpType::kAdd || op == OpType::kBatchNormalization ||
         op == OpType::kBatchNormTraining;
}

std::string OperandString(const device::Operand& operand) {
  return operand.present ? absl::StrCat(DTypeName(operand.dtype), ShapeString(operand.shape)) : "-";
}

// The op with what goes in and comes out.
std::string KindOf(const device::KernelRequest& request) {
  const auto join = [](const std::vector<device::Operand>& operands) {
    return absl::StrJoin(operands, " ",
                         [](std::string* out, const device::Operand& o) { absl::StrAppend(out, OperandString(o)); });
  };
  return absl::StrCat(OpName(request.node->op), " ", join(request.inputs), " -> ", join(request.outputs));
}

// The key of a choice: the node and everything about its shapes, so that a plan made for others does not fit silently.
std::string ChoiceKey(const std::string& label, const std::string& name, const device::KernelRequest& request) {
  return absl::StrCat(label, "/", name, " ", KindOf(request));
}

// Gradients that stay are read behind the pass: nothing is gained by finishing them early, and it takes memory longer.
Graph GraphToPlan(const device::Device& device, const Graph& graph, const PlanOptions& options, bool finish_early) {
  Graph planned = options.fuse ? RewriteForPlan(graph) : graph;
  if (options.fuse && device.info().kind == "cuda") PadClasses(&planned);
  if (finish_early) FinishGradientsEarly(&planned);
  return planned;
}

}  // namespace

PlanBuilder::PlanBuilder(device::Device* device, const Graph& graph, const PlanOptions& options)
    : device_(device),
      graph_(GraphToPlan(*device, graph, options, MemoryOfPass(options) != GradientMemory::kUntilNextPass)),
      options_(options),
      state_(std::make_unique<Plan::State>()) {
  state_->device = device;
  state_->pulse = options.pulse;
  state_->accumulate_passes = options.accumulate_passes;
  state_->gradient_memory = options.gradients;
  state_->poison = options.poison;
}

absl::StatusOr<std::unique_ptr<Plan>> PlanBuilder::Build() {
  for (const Node& node : graph_.nodes) {
    for (const std::string& input : node.inputs) readers_[input].push_back(&node);
  }
  output_names_.insert(graph_.outputs.begin(), graph_.outputs.end());
  for (const Variable& variable : graph_.variables) gradient_of_[GradientName(variable.name)] = variable.name;
  LS_ASSIGN_OR_RETURN(state_->stream, device_->NewStream());
  LS_RETURN_IF_ERROR(AddSources());
  LS_RETURN_IF_ERROR(AddNodes());
  LS_RETURN_IF_ERROR(AddOutputs());
  LS_RETURN_IF_ERROR(Recompute());
  FindLifetimes();
  ShareInPlace();
  AddWorkspaces();
  LS_RETURN_IF_ERROR(PlaceGradients());
  PlaceRest();
  return std::unique_ptr<Plan>(new Plan(std::move(state_)));
}

int PlanBuilder::AddValue(std::string name, DType dtype, Shape shape, device::Layout layout, Home home) {
  const int value = static_cast<int>(state_->values.size());
  const int64_t bytes = layout.row_major() ? NumElements(shape) * DTypeSize(dtype) : static_cast<int64_t>(layout.bytes);
  state_->storages.push_back({.home = home, .bytes = bytes});
  state_->values.push_back({.name = std::move(name),
                            .dtype = dtype,
                            .shape = std::move(shape),
                            .layout = std::move(layout),
                            .storage = static_cast<int>(state_->storages.size()) - 1});
  return value;
}

absl::Status PlanBuilder::AddSources() {
  for (const GraphInput& input : graph_.inputs) {
    const auto info = graph_.values.find(input.name);
    if (info == graph_.values.end()) {
      return absl::InternalError(absl::StrCat("input '", input.name, "' has no inferred shape"));
    }
    const int value = AddValue(input.name, input.dtype, info->second.shape, {}, Home::kArena);
    by_name_[input.name] = value;
    if (input.name == kRandomInput) {
      state_->random_value = value;
      continue;
    }
    state_->inputs.push_back({input.name, input.dtype, info->second.shape});
    state_->input_values.push_back(value);
  }
  for (const Variable& variable : graph_.variables) {
    const int value = AddValue(variable.name, variable.dtype, variable.shape, {}, Home::kVariable);
    state_->variables.emplace_back(variable.name, value);
    by_name_[variable.name] = value;
  }
  // Every layer of an export may have a mask of its own: what is equal lies there once.
  std::map<std::string, std::vector<std::pair<const Tensor*, int>>> known;
  for (const Constant& constant : graph_.constants) {
    auto& alike = known[absl::StrCat(DTypeName(constant.value->dtype()), ShapeString(constant.value->shape()))];
    const auto equal = std::find_if(alike.begin(), alike.end(), [&](const auto& other) {
      const auto bytes = static_cast<size_t>(constant.value->byte_size());
      return bytes == 0 || std::memcmp(other.first->data(), constant.value->data(), bytes) == 0;
    });
    if (equal != alike.end()) {
      by_name_[constant.name] = equal->second;
      continue;
    }
    const int value = AddValue(constant.name, constant.value->dtype(), constant.value->shape(), {}, Home::kPersistent);
    state_->constants.emplace_back(value, constant.value);
    by_name_[constant.name] = value;
    alike.emplace_back(constant.value.get(), value);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> PlanBuilder::Find(const Node& node, const std::string& name) const {
  if (name.empty()) return -1;
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) {
    return AtNode(node, absl::InternalError(absl::StrCat("nothing before it produces its input '", name, "'")));
  }
  return found->second;
}

PlanBuilder::Home PlanBuilder::HomeOfOutput(const std::string& name) const {
  if (!IsOutput(name)) return Home::kArena;
  return gradient_of_.count(name) > 0 ? Home::kGradient : Home::kPersistent;
}

void PlanBuilder::AddCopy(int from, int to) {
  const PlanValue& value = state_->values[static_cast<size_t>(to)];
  state_->steps.push_back({.node = absl::StrCat("copy of ", value.name),
                           .description = {.text = absl::StrCat("copy of '", value.name, "'")},
                           .inputs = {from},
                           .outputs = {to}});
  origins_.emplace_back();
}

const Node* PlanBuilder::FusableRelu(const Node& node) const {
  if (!options_.fuse || !MayFuseRelu(node.op)) return nullptr;
  if (IsOutput(node.outputs[0])) return nullptr;
  const auto readers = readers_.find(node.outputs[0]);
  if (readers == readers_.end() || readers->second.size() != 1 || readers->second[0]->op != OpType::kRelu) {
    return nullptr;
  }
  const Node* relu = readers->second[0];
  return device_->Supports(Request(node, relu)).ok() ? relu : nullptr;
}

device::KernelRequest PlanBuilder::Request(const Node& node, const Node* relu) const {
  device::KernelRequest request{.node = &node, .free_layouts = options_.free_layouts, .trial = options_.trials};
  request.epilogue = relu != nullptr ? device::Epilogue::kRelu : device::Epilogue::kNone;
  for (const std::string& name : node.inputs) {
    if (name.empty()) {
      request.inputs.push_back({.present = false});
      continue;
    }
    const PlanValue& value = state_->values[static_cast<size_t>(by_name_.at(name))];
    request.inputs.push_back({.dtype = value.dtype, .shape = value.shape, .layout = value.layout});
  }
  for (const std::string& name : node.outputs) {
    if (name.empty()) {
      request.outputs.push_back({.present = false});
      continue;
    }
    const ValueInfo& info = graph_.values.at(name);
    request.outputs.push_back({.dtype = info.dtype, .shape = info.shape});
  }
  return request;
}

absl::Status PlanBuilder::AddNodes() {
  std::set<const Node*> fused;
  for (const Node& node : graph_.nodes) {
    AdvancePulse(options_.pulse);
    if (fused.count(&node) > 0) continue;
    if (backward_ < 0 && BeginsBackward(node)) backward_ = static_cast<int>(state_->steps.size());
    for (const std::string& input : node.inputs) LS_RETURN_IF_ERROR(Find(node, input).status());
    for (const std::string& output : node.outputs) {
      if (!output.empty() && graph_.values.count(output) == 0) {
        return AtNode(node, absl::InternalError(absl::StrCat("its output '", output, "' has no inferred shape")));
      }
      if (by_name_.count(output) > 0) {
        return AtNode(node, absl::InternalError(absl::StrCat("its output '", output, "' is a value already")));
      }
    }
    if (IsView(node.op)) {
      LS_RETURN_IF_ERROR(AddView(node));
      continue;
    }
    const Node* relu = FusableRelu(node);
    if (relu != nullptr) fused.insert(relu);
    if (absl::Status status = AddNode(node, relu); !status.ok()) return AtNode(node, status);
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::AddView(const Node& node) {
  LS_ASSIGN_OR_RETURN(const int given, Find(node, node.inputs[0]));
  LS_ASSIGN_OR_RETURN(const int from, InLayout(given, device::Layout(), nullptr));
  const std::string& name = node.outputs[0];
  const ValueInfo& info = graph_.values.at(name);
  const int to = AddValue(name, info.dtype, info.shape, {}, HomeOfOutput(name));
  by_name_[name] = to;
  if (IsOutput(name)) {
    AddCopy(from, to);
  } else {
    StorageOf(to).bytes = 0;  // nobody's any more: it takes no room
    state_->values[static_cast<size_t>(to)].storage = state_->values[static_cast<size_t>(from)].storage;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<device::Kernel>> PlanBuilder::MakeKernel(device::KernelRequest request,
                                                                        const std::string& name,
                                                                        std::vector<device::Refusal>* refusals) {
  std::string key = ChoiceKey(options_.label, name, request);
  // Nodes 'a' and 'b' in one kernel are called as a node 'a+b' is.
  while (state_->choices.count(key) > 0) key += "'";
  if (options_.choices != nullptr) {
    const auto choice = options_.choices->find(key);
    if (choice == options_.choices->end()) {
      return absl::InvalidArgumentError(absl::StrCat("the kernel plan has no choice for '", key,
                                                     "'; it was made for another model, batch or device, or by another "
                                                     "version. Name a kernel plan of this job, or none to make one."));
    }
    request.implementation = choice->second;
  }
  std::string remark;
  request.remark = &remark;
  request.refusals = refusals;
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel, device_->MakeKernel(request));
  state_->choices[key] = kernel->implementation();
  if (!remark.empty() && remarked_.insert(KindOf(request)).second) {
    LS_LOG(warn, "node '", name, "' of ", options_.label, " and those like it run on ", kernel->implementation(), ": ",
           remark, " (", KindOf(request), ")");
  }
  return kernel;
}

absl::Status PlanBuilder::AddNode(const Node& node, const Node* relu) {
  const std::string name = relu != nullptr ? absl::StrCat(node.name, "+", relu->name) : node.name;
  device::KernelRequest request = Request(node, relu);
  std::vector<device::Refusal> refusals;
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Kernel> kernel, MakeKernel(request, name, &refusals));
  PlanStep step{.node = name};
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    int value = -1;
    if (!node.inputs[i].empty()) {
      LS_ASSIGN_OR_RETURN(value,
                          InLayout(by_name_.at(node.inputs[i]), kernel->input_layout(static_cast<int>(i)), &node));
    }
    step.inputs.push_back(value);
  }
  std::vector<std::pair<int, int>> to_row_major;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& output = relu != nullptr && i == 0 ? relu->outputs[0] : node.outputs[i];
    if (output.empty()) {
      step.outputs.push_back(-1);
      continue;
    }
    const ValueInfo& info = graph_.values.at(output);
    const device::Layout layout = kernel->output_layout(static_cast<int>(i));
    const bool detour = IsOutput(output) && !layout.row_major();
    const int value = AddValue(output, info.dtype, info.shape, layout, detour ? Home::kArena : HomeOfOutput(output));
    by_name_[output] = value;
    step.outputs.push_back(value);
    if (detour) {
      to_row_major.emplace_back(value, AddValue(output, info.dtype, info.shape, {}, HomeOfOutput(output)));
      by_name_[output] = to_row_major.back().second;
    }
  }
  step.description = {.text = absl::StrCat(name, " ", OpName(node.op), " ", kernel->implementation()),
                      .node = name,
                      .op = std::string(OpName(node.op)),
                      .implementation = kernel->implementation(),
                      .refusals = std::move(refusals)};
  step.kernel = std::move(kernel);
  state_->steps.push_back(std::move(step));
  origins_.push_back({.request = std::move(request), .reorder = {}});
  for (const auto& [from, to] : to_row_major) LS_RETURN_IF_ERROR(AddReorder(from, to));
  return absl::OkStatus();
}

absl::Status PlanBuilder::AddReorder(int from, int to) {
  const PlanValue& source = state_->values[static_cast<size_t>(from)];
  const PlanValue& target = state_->values[static_cast<size_t>(to)];
  PlanStep step{.node = absl::StrCat("layout of ", source.name), .inputs = {from}, .outputs = {to}};
  const auto word = [](const device::Layout& l) { return l.row_major() ? std::string("row-major") : l.name; };
  step.description.text =
      absl::StrCat("layout of '", source.name, "': ", word(source.layout), " to ", word(target.layout));
  const device::ReorderRequest request{source.dtype, source.shape, source.layout, target.layout};
  LS_ASSIGN_OR_RETURN(step.kernel, device_->MakeReorder(request));
  step.of_variable = StorageOf(from).home == Home::kVariable;
  if (step.of_variable && StorageOf(to).home == Home::kPersistent) {
    state_->refresh.push_back(std::move(step));
    return absl::OkStatus();
  }
  state_->steps.push_back(std::move(step));
  origins_.push_back({.request = {}, .reorder = request});
  return absl::OkStatus();
}

PlanBuilder::Home PlanBuilder::HomeOfCopy(int variable, const Node* reader) const {
  if (options_.recompute == Recomputation::kNone || reader == nullptr) return Home::kPersistent;
  const bool forward = reader->op == OpType::kConv;
  if (!forward && reader->op != OpType::kConvGradInput) return Home::kPersistent;
  const PlanValue& weights = state_->values[static_cast<size_t>(variable)];
  if (NumElements(weights.shape) * DTypeSize(weights.dtype) < kLeastCheapBytes) return Home::kPersistent;
  // How often each weight is multiplied: at every place of the convolution's result.
  const Shape& result = graph_.values.at(forward ? reader->outputs[0] : reader->inputs[0]).shape;
  return NumElements(result) / result[1] < kLeastPlaces ? Home::kPersistent : Home::kArena;
}

absl::StatusOr<int> PlanBuilder::InLayout(int value, const device::Layout& layout, const Node* reader) {
  if (state_->values[static_cast<size_t>(value)].layout == layout) return value;
  const auto key = std::make_pair(value, layout.encoding);
  if (const auto found = in_layout_.find(key); found != in_layout_.end()) return found->second;
  const PlanValue source = state_->values[static_cast<size_t>(value)];
  const Home home = StorageOf(value).home == Home::kVariable ? HomeOfCopy(value, reader) : Home::kArena;
  const int copy = AddValue(source.name, source.dtype, source.shape, layout, home);
  LS_RETURN_IF_ERROR(AddReorder(value, copy));
  in_layout_[key] = copy;
  return copy;
}

absl::Status PlanBuilder::AddOutputs() {
  for (const std::string& name : graph_.outputs) {
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) {
      return absl::InternalError(absl::StrCat("nothing produces the graph's output '", name, "'"));
    }
    int value = found->second;
    const PlanValue source = state_->values[static_cast<size_t>(value)];
    const Home wanted = HomeOfOutput(name);
    // An input, a constant or a variable that is an output itself: the pass copies it.
    const bool is_constant = std::any_of(state_->constants.begin(), state_->constants.end(),
                                         [&](const auto& constant) { return constant.first == value; });
    if (StorageOf(value).home != wanted || is_constant) {
      const int copy = AddValue(name, source.dtype, source.shape, {}, wanted);
      AddCopy(value, copy);
      value = copy;
    }
    state_->outputs.push_back({name, source.dtype, source.shape});
    state_->output_values.push_back(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Plan>> Plan::Draft(device::Device* device, const Graph& graph,
                                                  const PlanOptions& options) {
  return PlanBuilder(device, graph, options).Build();
}

}  // namespace lockstep::worker
