#include "common/graph/state_layout.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/checkpoint_tensor.h"

namespace lockstep {
namespace {

// Of adafactor, as PyTorch calls them.
constexpr char kRowSlot[] = "row_var";
constexpr char kColumnSlot[] = "col_var";
constexpr char kVectorSlot[] = "variance";

// Calls `visit` for every parameter in the order of the variables.
template <typename Visit>
void ForEachParameter(const MetaGraph& metagraph, Visit visit) {
  for (const Variable& variable : metagraph.forward.variables) {
    if (variable.kind == VariableKind::kParameter) visit(variable);
  }
}

StateKind KindOf(VariableKind kind) {
  switch (kind) {
    case VariableKind::kParameter:
      return StateKind::kParameter;
    case VariableKind::kStatistic:
      return StateKind::kStatistic;
    case VariableKind::kFrozen:
      return StateKind::kFrozen;
  }
  return StateKind::kFrozen;
}

// The averaged model is whole, so that it can be loaded like the other: what is not averaged is there as a second name.
void AddAverages(StateLayout& layout) {
  const size_t of_model = layout.tensors.size();
  for (size_t i = 0; i < of_model; ++i) {
    const StateTensor tensor = layout.tensors[i];
    if (tensor.group != StateGroup::kModel) continue;
    const bool averaged = tensor.kind == StateKind::kParameter;
    StateTensor twin = tensor;
    twin.spec.name = EmaName(tensor.spec.name);
    twin.group = StateGroup::kEma;
    twin.kind = averaged ? StateKind::kAverage : StateKind::kAlias;
    if (tensor.kind == StateKind::kAlias) {
      const int of = layout.Find(tensor.variable);
      const bool of_parameter = of >= 0 && layout.tensors[static_cast<size_t>(of)].kind == StateKind::kParameter;
      if (of_parameter) twin.variable = EmaName(tensor.variable);
    }
    layout.tensors.push_back(std::move(twin));
  }
}

}  // namespace

int StateLayout::Find(absl::string_view name) const {
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].spec.name == name) return static_cast<int>(i);
  }
  return -1;
}

int64_t StateLayout::TotalBytes() const {
  int64_t total = 0;
  for (const StateTensor& tensor : tensors) total += NumElements(tensor.spec.shape) * DTypeSize(tensor.spec.dtype);
  return total;
}

std::vector<std::string> SlotNames(const OptimizerRule& optimizer) {
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      if (optimizer.momentum == 0.0) return {};
      return {"momentum_buffer"};
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
    case OptimizerKind::kLamb:
      return {"exp_avg", "exp_avg_sq"};
    case OptimizerKind::kRmsProp:
      if (optimizer.momentum == 0.0) return {"square_avg"};
      return {"square_avg", "momentum_buffer"};
    case OptimizerKind::kAdagrad:
      return {"sum"};
    case OptimizerKind::kLion:
      return {"exp_avg"};
    case OptimizerKind::kAdafactor:
      return {kRowSlot, kColumnSlot, kVectorSlot};
  }
  return {};
}

std::optional<Shape> SlotShape(const OptimizerRule& optimizer, absl::string_view slot, const Shape& parameter) {
  if (optimizer.kind != OptimizerKind::kAdafactor) return parameter;
  const bool matrix = parameter.size() >= 2;
  if (matrix == (slot == kVectorSlot)) return std::nullopt;
  Shape shape = parameter;
  if (slot == kRowSlot) shape[shape.size() - 1] = 1;
  if (slot == kColumnSlot) shape[shape.size() - 2] = 1;
  return shape;
}

std::string EmaName(absl::string_view name) { return absl::StrCat(kEmaPrefix, name); }

std::string ExponentName(absl::string_view parameter) { return absl::StrCat("lockstep.exponent.", parameter); }

StateLayout MakeStateLayout(const MetaGraph& metagraph) {
  StateLayout layout;
  for (const Variable& variable : metagraph.forward.variables) {
    const StateKind kind = KindOf(variable.kind);
    layout.tensors.push_back(
        {{variable.name, variable.dtype, variable.shape}, StateGroup::kModel, kind, variable.name});
  }
  for (const StateAlias& alias : metagraph.aliases) {
    TensorSpec spec{alias.name, DType::kI64, {}};  // of the step counter
    for (const Variable& variable : metagraph.forward.variables) {
      if (variable.name == alias.of) spec = {alias.name, variable.dtype, variable.shape};
    }
    layout.tensors.push_back({std::move(spec), StateGroup::kModel, StateKind::kAlias, alias.of});
  }
  for (const std::string& slot : SlotNames(metagraph.update.optimizer)) {
    ForEachParameter(metagraph, [&](const Variable& variable) {
      const std::optional<Shape> shape = SlotShape(metagraph.update.optimizer, slot, variable.shape);
      if (!shape.has_value()) return;
      layout.tensors.push_back({{absl::StrCat(slot, ".", variable.name), variable.dtype, *shape},
                                StateGroup::kOptimizer,
                                StateKind::kSlot,
                                variable.name});
    });
  }
  if (metagraph.update.reduction == ReductionMode::kExact) {
    ForEachParameter(metagraph, [&](const Variable& variable) {
      layout.tensors.push_back({{ExponentName(variable.name), DType::kI32, {}},
                                StateGroup::kOptimizer,
                                StateKind::kExponent,
                                variable.name});
    });
  }
  if (metagraph.update.ema.has_value()) AddAverages(layout);
  layout.tensors.push_back({{kStepCounterName, DType::kI64, {}}, StateGroup::kOptimizer, StateKind::kCounter, ""});
  return layout;
}

}  // namespace lockstep
