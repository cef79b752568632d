// The state of a job as an ordered list of named tensors: what an update changes, a snapshot copies, a checkpoint
// holds, a newcomer receives and a digest covers. A pure function of the metagraph.
//
// Order: variables as the graph lists them; then aliases; then slots, slot by slot, each in the order of the
// parameters; then exponents in that order; then, where weights are averaged, the whole model once more with the
// averages in place of the parameters, in the order of the model; then lockstep.step.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_STATE_LAYOUT_H_
#define LOCKSTEP_COMMON_GRAPH_STATE_LAYOUT_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/graph/metagraph.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// Which files of a checkpoint a tensor goes to; in the order of kGroups (common/checkpoint_format).
enum class StateGroup : uint8_t { kModel, kOptimizer, kEma };

enum class StateKind : uint8_t {
  kParameter,
  kStatistic,
  kFrozen,
  kAlias,  // the bytes of another tensor, under a second name
  kSlot,
  kAverage,   // of a parameter
  kExponent,  // I32 scalar: the power of two of a gradient's fixed point
  kCounter,   // I64 scalar
};

// The exponent of a gradient that was never reduced: such a step first runs a pass that finds the largest magnitude.
inline constexpr int32_t kExponentUnset = std::numeric_limits<int32_t>::min();

struct StateTensor {
  TensorSpec spec;
  StateGroup group = StateGroup::kModel;
  StateKind kind = StateKind::kParameter;
  // The variable that the tensor is or belongs to; for an alias, the tensor that it is a second name of; empty for
  // counters.
  std::string variable;
  friend bool operator==(const StateTensor&, const StateTensor&) = default;
};

struct StateLayout {
  std::vector<StateTensor> tensors;

  // Index of the tensor of that name, or -1.
  int Find(absl::string_view name) const;
  // Sum of the tensors' bytes.
  int64_t TotalBytes() const;
};

// The slots that an optimizer keeps per parameter, e.g. {"exp_avg", "exp_avg_sq"}; the tensor of one is called
// "<slot>.<parameter>".
std::vector<std::string> SlotNames(const OptimizerRule& optimizer);

// The shape of a slot of a parameter; nullopt where a parameter of that shape does not have the slot. Adafactor keeps
// `row_var` and `col_var` of a parameter with two dimensions or more, with 1 in place of its last and of its last but
// one dimension, and `variance` of any other.
std::optional<Shape> SlotShape(const OptimizerRule& optimizer, absl::string_view slot, const Shape& parameter);

// "lockstep.ema.<name>": the counterpart of a tensor of the model in the averaged model.
std::string EmaName(absl::string_view name);

// "lockstep.exponent.<parameter>"
std::string ExponentName(absl::string_view parameter);

StateLayout MakeStateLayout(const MetaGraph& metagraph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_STATE_LAYOUT_H_
