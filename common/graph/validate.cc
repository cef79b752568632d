#include "common/graph/validate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/graph/moved_statistics.h"
#include "common/graph/ops/schema.h"
#include "common/graph/schedule.h"
#include "common/graph/state_layout.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

template <typename... Args>
absl::Status Invalid(const Args&... args) {
  return absl::InvalidArgumentError(absl::StrCat(args...));
}

absl::Status AddName(absl::string_view what, const std::string& name, std::set<std::string>* names) {
  if (name.empty()) return Invalid("a ", what, " has no name");
  for (const char* reserved : {"lockstep.", "grad.", "stat."}) {
    if (absl::StartsWith(name, reserved)) {
      return Invalid("the ", what, " '", name, "' begins with '", reserved, "', which is reserved; rename it");
    }
  }
  if (name.find('\0') != std::string::npos) return Invalid("the name of a ", what, " contains a zero byte");
  if (!names->insert(name).second) return Invalid("the ", what, " '", name, "' exists twice");
  return absl::OkStatus();
}

absl::Status CheckVariable(const Variable& variable) {
  const InitRule& init = variable.init;
  if (absl::Status status = CheckedByteSize(variable.dtype, variable.shape).status(); !status.ok()) {
    return Invalid("variable '", variable.name, "': ", status.message());
  }
  if (init.kind == InitRule::Kind::kKaimingUniform && init.fan_in < 1) {
    return Invalid("variable '", variable.name, "' begins by a fan-in of ", init.fan_in);
  }
  if (init.kind == InitRule::Kind::kNormal && !(init.value >= 0 && std::isfinite(init.value))) {
    return Invalid("variable '", variable.name, "' begins with a standard deviation of ", init.value);
  }
  if (init.kind == InitRule::Kind::kFile && (init.file_sha256.size() != 64 || init.file_tensor.empty())) {
    return Invalid("variable '", variable.name, "' begins from a file that is not named by hash and tensor");
  }
  return absl::OkStatus();
}

// Passes index inputs and outputs before shape inference counts them.
absl::Status CheckOperands(const Node& node) {
  const OpSchema& schema = SchemaOf(node.op);
  const auto inputs = static_cast<int>(node.inputs.size());
  const auto outputs = static_cast<int>(node.outputs.size());
  if (inputs < schema.min_inputs || inputs > schema.max_inputs) {
    return Invalid(NodeLabel(node), ": has ", inputs, " inputs; the op takes ", schema.min_inputs, " to ",
                   schema.max_inputs);
  }
  if (outputs < schema.min_outputs || outputs > schema.max_outputs || node.outputs[0].empty()) {
    return Invalid(NodeLabel(node), ": has ", outputs, " outputs; the op gives ", schema.min_outputs, " to ",
                   schema.max_outputs, ", the first always");
  }
  return absl::OkStatus();
}

absl::Status CheckInput(const GraphInput& input) {
  Shape shape = input.shape;
  if (!shape.empty() && shape[0] == kBatchDim) shape[0] = 1;
  if (absl::Status status = CheckedByteSize(input.dtype, shape).status(); !status.ok()) {
    return Invalid("input '", input.name, "': ", status.message());
  }
  return absl::OkStatus();
}

absl::Status CheckSignature(const MetaGraph& metagraph) {
  std::vector<std::string> described;
  for (const SignatureInput& input : metagraph.signature) described.push_back(input.name);
  std::vector<std::string> taken;
  for (const GraphInput& input : metagraph.forward.inputs) taken.push_back(input.name);
  if (described != taken) {
    return Invalid("the signature describes the inputs ", absl::StrJoin(described, ", "), ", the graph takes ",
                   absl::StrJoin(taken, ", "));
  }
  for (size_t i = 0; i < metagraph.signature.size(); ++i) {
    const SignatureInput& input = metagraph.signature[i];
    const GraphInput& graph_input = metagraph.forward.inputs[i];
    if (input.dtype != graph_input.dtype || input.shape != graph_input.shape) {
      return Invalid("input '", input.name, "' is ", DTypeName(input.dtype), " ", ShapeString(input.shape),
                     " in the data and ", DTypeName(graph_input.dtype), " ", ShapeString(graph_input.shape),
                     " in the model");
    }
    const Normalisation& norm = input.normalisation;
    const auto zero = [](double std) { return !(std > 0); };
    if (norm.mean.empty() || norm.std.size() != norm.mean.size() ||
        std::any_of(norm.std.begin(), norm.std.end(), zero)) {
      return Invalid("input '", input.name,
                     "': normalisation needs as many means as deviations, and deviations over 0");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLoss(const MetaGraph& metagraph) {
  const LossRule& loss = metagraph.loss;
  const std::vector<std::string>& outputs = metagraph.forward.outputs;
  if (std::count(outputs.begin(), outputs.end(), loss.output) == 0) {
    return Invalid("the loss reads '", loss.output, "', which is not an output of the model; those are ",
                   absl::StrJoin(outputs, ", "));
  }
  const bool labelled = std::any_of(metagraph.signature.begin(), metagraph.signature.end(), [&](const auto& input) {
    return input.name == loss.label && input.role == InputRole::kLabel;
  });
  if (loss.kind != LossKind::kGraphOutput && !labelled) {
    return Invalid("the loss compares with '", loss.label, "', which is not an input with the role of a label");
  }
  if (!(loss.label_smoothing >= 0 && loss.label_smoothing < 1)) {
    return Invalid("label_smoothing ", loss.label_smoothing, " does not lie in [0, 1)");
  }
  if (loss.label_smoothing > 0 && !loss.class_weights.empty()) {
    return Invalid("label_smoothing and class weights do not go together");
  }
  if (loss.mixes_labels && (loss.kind != LossKind::kSoftmaxCrossEntropy || !loss.class_weights.empty())) {
    return Invalid("labels are mixed for a softmax cross entropy alone, without class weights");
  }
  if (loss.mixes_labels && metagraph.pass_batch < 2) {
    return Invalid("labels are mixed within a pass, and a pass has one sample; it needs at least two");
  }
  if (!(loss.huber_delta > 0)) return Invalid("huber_delta ", loss.huber_delta, " is not positive");
  return absl::OkStatus();
}

absl::Status CheckAliases(const MetaGraph& metagraph) {
  std::set<std::string> variables;
  for (const Variable& variable : metagraph.forward.variables) variables.insert(variable.name);
  std::set<std::string> names = variables;
  for (const StateAlias& alias : metagraph.aliases) {
    LS_RETURN_IF_ERROR(AddName("second name", alias.name, &names));
    if (variables.count(alias.of) == 0 && alias.of != kStepCounterName) {
      return Invalid("'", alias.name, "' is a second name of '", alias.of, "', which is no variable");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSchedule(const ScheduleRule& s) {
  using Kind = ScheduleKind;
  const bool drops =
      s.kind == Kind::kStep || s.kind == Kind::kMilestones || s.kind == Kind::kExponential || s.kind == Kind::kPlateau;
  const bool has_size = s.kind == Kind::kStep || s.kind == Kind::kExponential || s.kind == Kind::kCosineRestarts;
  if (drops && !(s.gamma > 0 && s.gamma <= 1)) return Invalid("the schedule needs a gamma in (0, 1], not ", s.gamma);
  if (has_size && s.step_size < 1) return Invalid("the schedule needs a step_size over 0, not ", s.step_size);
  if (EndsWithJob(s.kind) && s.total_steps <= s.warmup_steps) {
    return Invalid("the schedule needs more steps (", s.total_steps, ") than warmup_steps (", s.warmup_steps, ")");
  }
  if (!std::is_sorted(s.milestones.begin(), s.milestones.end()))
    return Invalid("the schedule's milestones do not rise");
  if (!(s.power > 0) || s.growth < 1 || !(s.pct_start > 0 && s.pct_start < 1) || !(s.div_factor >= 1) ||
      !(s.final_div_factor >= 1)) {
    return Invalid("the schedule's power ", s.power, ", growth ", s.growth, ", pct_start ", s.pct_start,
                   ", div_factor ", s.div_factor, " or final_div_factor ", s.final_div_factor, " is out of range");
  }
  if (s.kind == Kind::kOneCycle && s.warmup_steps > 0) return Invalid("one_cycle rises by itself: it has no warmup");
  return absl::OkStatus();
}

absl::Status CheckAdafactor(const OptimizerRule& o) {
  // Squares are compared with its square.
  if (!(static_cast<float>(o.epsilon * o.epsilon) >= std::numeric_limits<float>::min())) {
    return Invalid("the square of epsilon ", o.epsilon,
                   " has to be positive as a float32; give train.optimizer.eps 1e-18 or more");
  }
  if (!(o.beta2_decay <= 0) || !(o.min_scale >= 0) || !(static_cast<float>(o.max_rms) > 0)) {
    return Invalid("beta2_decay ", o.beta2_decay, " must not be positive, min_scale ", o.min_scale,
                   " not negative, and max_rms ", o.max_rms, " has to be positive as a float32");
  }
  return absl::OkStatus();
}

absl::Status CheckUpdate(const UpdateRule& update) {
  const OptimizerRule& o = update.optimizer;
  const auto fraction = [](double x) { return x >= 0 && x < 1; };
  if (!fraction(o.momentum) || !fraction(o.beta1) || !fraction(o.beta2)) {
    return Invalid("momentum ", o.momentum, ", beta1 ", o.beta1, " and beta2 ", o.beta2, " have to lie in [0, 1)");
  }
  if (o.nesterov && o.momentum == 0) return Invalid("nesterov needs a momentum over 0");
  if (!(o.weight_decay >= 0) || !(static_cast<float>(o.epsilon) >= std::numeric_limits<float>::min())) {
    return Invalid("weight_decay ", o.weight_decay, " must not be negative and epsilon ", o.epsilon,
                   " has to be positive as a float32");
  }
  if (o.kind == OptimizerKind::kAdafactor) LS_RETURN_IF_ERROR(CheckAdafactor(o));
  std::set<std::string> grouped;
  for (const ParameterGroup& group : o.groups) {
    if (!(group.lr >= 0) || !(group.weight_decay >= 0)) {
      return Invalid("a parameter group's lr ", group.lr, " and weight_decay ", group.weight_decay,
                     " must not be negative");
    }
    for (const std::string& name : group.parameters) {
      if (!grouped.insert(name).second) return Invalid("'", name, "' is in two parameter groups");
    }
  }
  const ScheduleRule& s = update.schedule;
  if (!(s.lr >= 0) || !(s.min_lr >= 0) || s.warmup_steps < 0) {
    return Invalid("lr ", s.lr, ", min_lr ", s.min_lr, " and warmup_steps ", s.warmup_steps, " must not be negative");
  }
  LS_RETURN_IF_ERROR(CheckSchedule(s));
  if (update.clip_global_norm.has_value() && !(*update.clip_global_norm > 0)) {
    return Invalid("clip_global_norm ", *update.clip_global_norm, " is not positive");
  }
  return absl::OkStatus();
}

// What the state holds beside the model is named after it, and must not meet a name of the model.
absl::Status CheckStateNames(const MetaGraph& metagraph) {
  std::set<std::string> names;
  for (const StateTensor& tensor : MakeStateLayout(metagraph).tensors) {
    if (const absl::Status named = CheckTensorName(tensor.spec.name); !named.ok()) {
      return Invalid("no checkpoint can hold a tensor of the model: ", named.message(), "; rename it");
    }
    if (names.insert(tensor.spec.name).second) continue;
    return Invalid("the model has a tensor '", tensor.spec.name, "', and so is called what the optimizer keeps for '",
                   tensor.variable, "'; rename the model's, or choose another train.optimizer.name");
  }
  return absl::OkStatus();
}

// All of it together has to be counted: a worker adds tensors up, and holds some of them several times.
absl::Status CheckStateSize(const MetaGraph& metagraph) {
  constexpr int64_t kMostBytes = int64_t{1} << 56;
  int64_t total = 0;
  for (const StateTensor& tensor : MakeStateLayout(metagraph).tensors) {
    const absl::StatusOr<int64_t> bytes = CheckedByteSize(tensor.spec.dtype, tensor.spec.shape);
    if (!bytes.ok() || *bytes > kMostBytes - total) {
      return Invalid("with '", tensor.spec.name, "' ", ShapeString(tensor.spec.shape), " the state has more than ",
                     kMostBytes, " bytes");
    }
    total += *bytes;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateForwardGraph(const Graph& graph) {
  std::set<std::string> values, moved;
  for (const std::string& variable : MovedStatistics(graph)) moved.insert(MovedValueName(variable));
  for (const GraphInput& input : graph.inputs) {
    LS_RETURN_IF_ERROR(AddName("input", input.name, &values));
    LS_RETURN_IF_ERROR(CheckInput(input));
  }
  for (const Variable& variable : graph.variables) {
    LS_RETURN_IF_ERROR(AddName("variable", variable.name, &values));
    LS_RETURN_IF_ERROR(CheckVariable(variable));
  }
  for (const Constant& constant : graph.constants) LS_RETURN_IF_ERROR(AddName("constant", constant.name, &values));
  std::set<std::string> nodes;
  for (const Node& node : graph.nodes) {
    LS_RETURN_IF_ERROR(AddName("node", node.name, &nodes));
    LS_RETURN_IF_ERROR(CheckOperands(node));
    for (const std::string& input : node.inputs) {
      if (!input.empty() && values.count(input) == 0) {
        return Invalid(NodeLabel(node), ": reads '", input, "', which nothing before it produces");
      }
    }
    for (const std::string& output : node.outputs) {
      if (output.empty()) continue;
      const bool moves = moved.count(output) != 0 && values.insert(output).second;
      if (!moves) LS_RETURN_IF_ERROR(AddName("value", output, &values));
    }
  }
  if (graph.outputs.empty()) return Invalid("the graph has no output");
  for (const std::string& output : graph.outputs) {
    if (values.count(output) == 0) return Invalid("the graph's output '", output, "' is produced by nothing");
  }
  return absl::OkStatus();
}

absl::Status ValidateMetaGraph(const MetaGraph& metagraph) {
  if (metagraph.version != kMetaGraphVersion) {
    return Invalid("the metagraph has version ", metagraph.version, "; this program reads version ", kMetaGraphVersion);
  }
  if (metagraph.pass_batch < 1) return Invalid("a pass has ", metagraph.pass_batch, " samples; it needs at least one");
  LS_RETURN_IF_ERROR(ValidateForwardGraph(metagraph.forward));
  LS_RETURN_IF_ERROR(CheckSignature(metagraph));
  LS_RETURN_IF_ERROR(CheckLoss(metagraph));
  LS_RETURN_IF_ERROR(CheckAliases(metagraph));
  LS_RETURN_IF_ERROR(CheckUpdate(metagraph.update));
  LS_RETURN_IF_ERROR(CheckStateNames(metagraph));
  return CheckStateSize(metagraph);
}

}  // namespace lockstep
