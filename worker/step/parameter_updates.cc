#include "worker/step/parameter_updates.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/state_layout.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

bool Holds(const std::vector<std::string>& sorted, const std::string& name) {
  return std::binary_search(sorted.begin(), sorted.end(), name);
}

// The group of a parameter; -1: it has none.
int GroupOf(const OptimizerRule& rule, const std::string& name) {
  const auto found = std::find_if(rule.groups.begin(), rule.groups.end(),
                                  [&](const ParameterGroup& group) { return Holds(group.parameters, name); });
  return found == rule.groups.end() ? -1 : static_cast<int>(found - rule.groups.begin());
}

device::TrailingMatrix MatrixOf(const Shape& shape) {
  if (shape.size() < 2) return {};
  return {.rows = shape[shape.size() - 2], .columns = shape.back()};
}

}  // namespace

std::vector<ParameterIndex> IndexParameters(const UpdateRule& rule, const StateLayout& layout,
                                            absl::Span<const std::string> names) {
  std::vector<ParameterIndex> indices;
  for (const std::string& name : names) {
    ParameterIndex& index = indices.emplace_back();
    index.value = layout.Find(name);
    for (const std::string& slot : SlotNames(rule.optimizer)) {
      const int found = layout.Find(absl::StrCat(slot, ".", name));
      if (found >= 0) index.slots.push_back(found);
    }
    index.average = layout.Find(EmaName(name));
    index.exponent = layout.Find(ExponentName(name));
    LS_CHECK(index.value >= 0 && (index.exponent >= 0 || rule.reduction != ReductionMode::kExact),
             "every parameter and its exponent stand in the state");
    index.decays = !Holds(rule.optimizer.no_decay, name);
    index.group = GroupOf(rule.optimizer, name);
  }
  return indices;
}

absl::StatusOr<ParameterUpdates> ParameterUpdates::Make(const UpdateRule& rule, device::StepMath& math,
                                                        ReplicaState& state, absl::Span<const ParameterIndex> indices,
                                                        absl::Span<const GradientSum> gradients) {
  // By group, behind those without one.
  std::vector<std::vector<device::UpdateTensor>> tensors(rule.optimizer.groups.size() + 1);
  for (size_t t = 0; t < indices.size(); ++t) {
    const ParameterIndex& index = indices[t];
    device::UpdateTensor tensor{.size = gradients[t].size,
                                .value = state.floats(index.value),
                                .gradient = gradients[t].values,
                                .average = index.average >= 0 ? state.floats(index.average) : nullptr,
                                .decays = index.decays,
                                .shape = MatrixOf(state.layout().tensors[static_cast<size_t>(index.value)].spec.shape)};
    for (size_t s = 0; s < index.slots.size(); ++s) tensor.slots[s] = state.floats(index.slots[s]);
    tensors[static_cast<size_t>(index.group + 1)].push_back(tensor);
  }
  ParameterUpdates updates(math);
  for (size_t g = 0; g < tensors.size(); ++g) {
    if (tensors[g].empty()) continue;
    Group& group = updates.groups_.emplace_back();
    group.rule = g == 0 ? rule : RuleOfGroup(rule, rule.optimizer.groups[g - 1]);
    LS_ASSIGN_OR_RETURN(group.table, math.MakeUpdateTable(FormulaOf(group.rule.optimizer), tensors[g]));
  }
  return updates;
}

absl::Status ParameterUpdates::Queue(device::Stream& stream, const UpdatePlace& place, double denominator, double norm,
                                     const float* clip) const {
  for (const Group& group : groups_) {
    const UpdateScalars scalars = MakeUpdateScalars(group.rule, place, denominator, norm);
    LS_RETURN_IF_ERROR(math_->Update(stream, *group.table, scalars, clip));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
