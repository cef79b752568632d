#include "chief/checkpoint/tensorflow_plan.h"

#include <map>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/graph/state_layout.h"
#include "common/status/status_macros.h"
#include "common/tensorflow_bundle/object_graph.h"
#include "common/tensorflow_bundle/object_key.h"
#include "protos/tensorflow_bundle.pb.h"

namespace lockstep::chief {
namespace {

// What an optimizer keeps per parameter: here, for TensorFlow, and in its checkpoints that go by names.
struct SlotRow {
  absl::string_view slot;
  absl::string_view there;
  absl::string_view suffix;
};
constexpr SlotRow kSlots[] = {{"exp_avg", "m", "Adam"},
                              {"exp_avg_sq", "v", "Adam_1"},
                              {"momentum_buffer", "momentum", "Momentum"},
                              {"square_avg", "rms", "RMSProp"},
                              {"sum", "accumulator", "Adagrad"}};

template <typename T>
std::string BytesOf(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// As TensorFlow's Adam comes to it: the power for the update after `step` of them.
float PowerOf(double beta, int64_t step) {
  const auto factor = static_cast<float>(beta);
  float power = factor;
  for (int64_t i = 0; i < step; ++i) {
    const float next = power * factor;
    if (next == power) break;
    power = next;
  }
  return power;
}

// Objects and variables as they are added.
class Builder {
 public:
  Builder() { AddNode(); }

  // The object at `path`, made where it is missing.
  int At(const ObjectPath& path) {
    int node = 0;
    ObjectPath so_far;
    for (const std::string& name : path) {
      so_far.push_back(name);
      const auto [there, is_new] = nodes_.emplace(so_far, 0);
      if (is_new) there->second = Link(node, name, AddNode());
      node = there->second;
    }
    return node;
  }
  bool Has(const ObjectPath& path) const { return nodes_.contains(path); }
  // A further way to `node`. REQUIRES: nothing is at `path`.
  void Also(ObjectPath path, int node) {
    const std::string name = std::move(path.back());
    path.pop_back();
    const int parent = At(path);
    path.push_back(name);
    nodes_.emplace(std::move(path), Link(parent, name, node));
  }
  void Slot(int optimizer, int of, absl::string_view slot, int node) {
    auto* const variable = graph_.mutable_nodes(optimizer)->add_slot_variables();
    variable->set_original_variable_node_id(of);
    variable->set_slot_name(std::string(slot));
    variable->set_slot_variable_node_id(node);
  }
  int AddNode() {
    graph_.add_nodes()->mutable_has_checkpoint_values()->set_value(true);
    return graph_.nodes_size() - 1;
  }
  // Makes `node` a variable. `full_name`: where variables go by names.
  void Value(int node, const std::string& full_name, TensorflowVariable variable) {
    auto* const attribute = graph_.mutable_nodes(node)->add_attributes();
    attribute->set_name(kVariableValue);
    attribute->set_full_name(full_name);
    attribute->set_checkpoint_key(variable.spec.name);
    variables_.push_back(std::move(variable));
  }

  std::string Graph() const { return graph_.SerializeAsString(); }
  std::vector<TensorflowVariable> TakeVariables() { return std::move(variables_); }

 private:
  int Link(int parent, const std::string& name, int node) {
    auto* const child = graph_.mutable_nodes(parent)->add_children();
    child->set_node_id(node);
    child->set_local_name(name);
    return node;
  }

  tf::TrackableObjectGraph graph_;
  std::map<ObjectPath, int> nodes_;
  std::vector<TensorflowVariable> variables_;
};

ObjectPath PathOf(absl::string_view name) {
  ObjectPath path = {kModelObject};
  for (const absl::string_view part : absl::StrSplit(name, '.')) path.emplace_back(part);
  return path;
}

std::string FullNameOf(absl::string_view name) { return absl::StrJoin(absl::StrSplit(name, '.'), "/"); }

class Planner {
 public:
  Planner(const MetaGraph& metagraph, int64_t step, const TensorflowChoice& choice)
      : layout_(MakeStateLayout(metagraph)),
        optimizer_(metagraph.update.optimizer),
        step_(step),
        group_(choice.average ? StateGroup::kEma : StateGroup::kModel),
        with_optimizer_(!choice.average && !choice.weights_only) {}

  absl::StatusOr<TensorflowPlan> Run() {
    for (const StateTensor& tensor : layout_.tensors) {
      if (tensor.group == group_ && OriginalOf(tensor) == NameOf(tensor)) AddWeight(tensor);
    }
    for (const StateTensor& tensor : layout_.tensors) {
      if (tensor.group == group_) LS_RETURN_IF_ERROR(AddSecondName(tensor));
    }
    if (with_optimizer_) AddOptimizer();
    const ObjectPath counter = {kSaveCounterObject};
    AddValue(counter, kSaveCounterObject, {{VariableKey(counter), DType::kI64, {}}, "", BytesOf(int64_t{1})});
    plan_.variables = builder_.TakeVariables();
    plan_.graph = builder_.Graph();
    return std::move(plan_);
  }

 private:
  static std::string NameOf(const StateTensor& tensor) {
    return std::string(absl::StripPrefix(tensor.spec.name, kEmaPrefix));
  }
  // The tensor of the group that this one is under a second name, or itself. A count of the steps is a variable of its
  // own wherever it stands, as it is in PyTorch.
  static std::string OriginalOf(const StateTensor& tensor) {
    if (tensor.kind != StateKind::kAlias || tensor.variable == kStepCounterName) return NameOf(tensor);
    return std::string(absl::StripPrefix(tensor.variable, kEmaPrefix));
  }

  void AddValue(const ObjectPath& path, const std::string& full_name, TensorflowVariable variable) {
    builder_.Value(builder_.At(path), full_name, std::move(variable));
  }

  void AddWeight(const StateTensor& tensor) {
    const std::string name = NameOf(tensor);
    const ObjectPath path = PathOf(name);
    AddValue(path, FullNameOf(name), {{VariableKey(path), tensor.spec.dtype, tensor.spec.shape}, tensor.spec.name, ""});
    ++plan_.weights;
  }

  absl::Status AddSecondName(const StateTensor& tensor) {
    const std::string name = NameOf(tensor), original = OriginalOf(tensor);
    if (name == original) return absl::OkStatus();
    if (builder_.Has(PathOf(name))) {
      return absl::InvalidArgumentError(absl::StrCat("the weight '", name, "' is '", original,
                                                     "' under a second name, and the beginning of other names: a "
                                                     "TensorFlow checkpoint cannot hold both"));
    }
    builder_.Also(PathOf(name), builder_.At(PathOf(original)));
    return absl::OkStatus();
  }

  void AddOptimizer() {
    for (const StateTensor& tensor : layout_.tensors) {
      if (tensor.group != StateGroup::kOptimizer || AddSlot(tensor)) continue;
      if (tensor.kind == StateKind::kCounter) {
        AddScalar("iter", DType::kI64, tensor.spec.name, "");
      } else {
        plan_.left_out.push_back(tensor.spec.name);
      }
    }
    if (optimizer_.kind != OptimizerKind::kAdam && optimizer_.kind != OptimizerKind::kAdamW) return;
    AddScalar("beta1_power", DType::kF32, "", BytesOf(PowerOf(optimizer_.beta1, step_)));
    AddScalar("beta2_power", DType::kF32, "", BytesOf(PowerOf(optimizer_.beta2, step_)));
  }

  void AddScalar(const std::string& name, DType dtype, const std::string& tensor, const std::string& bytes) {
    const ObjectPath path = {kOptimizerObject, name};
    AddValue(path, name, {{VariableKey(path), dtype, {}}, tensor, bytes});
  }

  bool AddSlot(const StateTensor& tensor) {
    if (tensor.kind != StateKind::kSlot) return false;
    for (const SlotRow& row : kSlots) {
      if (tensor.spec.name != absl::StrCat(row.slot, ".", tensor.variable)) continue;
      const ObjectPath of = PathOf(tensor.variable);
      const int node = builder_.AddNode();
      builder_.Slot(builder_.At({kOptimizerObject}), builder_.At(of), row.there, node);
      builder_.Value(
          node, absl::StrCat(FullNameOf(tensor.variable), "/", row.suffix),
          {{SlotKey(of, {kOptimizerObject}, row.there), tensor.spec.dtype, tensor.spec.shape}, tensor.spec.name, ""});
      ++plan_.slots;
      return true;
    }
    return false;
  }

  const StateLayout layout_;
  const OptimizerRule optimizer_;
  const int64_t step_;
  const StateGroup group_;
  const bool with_optimizer_;
  Builder builder_;
  TensorflowPlan plan_;
};

}  // namespace

uint64_t TensorflowPlan::TotalBytes() const {
  uint64_t bytes = 0;
  for (const TensorflowVariable& variable : variables) {
    bytes += static_cast<uint64_t>(NumElements(variable.spec.shape) * DTypeSize(variable.spec.dtype));
  }
  return bytes;
}

absl::StatusOr<TensorflowPlan> PlanTensorflow(const MetaGraph& metagraph, int64_t step,
                                              const TensorflowChoice& choice) {
  return Planner(metagraph, step, choice).Run();
}

}  // namespace lockstep::chief
