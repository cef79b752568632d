// Conditions, and the branches that they choose (inline_functions.h).
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/status/status_macros.h"

namespace lockstep {

// A choice by a condition of one element, of any rank.
class OnnxImporter::Choice : private Expansion {
 public:
  Choice(OnnxImporter* importer, const Call& call) : Expansion(importer, call) {}

  // `x` where the condition holds, else `otherwise`.
  absl::Status Give(const std::string& condition, const std::string& x, const std::string& otherwise) {
    Expansion::Give(0, Add(OpType::kWhere, {Reshape(condition, {}), x, otherwise}));
    return status();
  }
  absl::Status GiveElse(const std::string& condition, const std::string& x, const std::string& otherwise) {
    return Give(condition, otherwise, x);
  }
};

// The value of a condition where it is known when the model is read.
absl::StatusOr<std::optional<bool>> OnnxImporter::KnownCondition(const std::string& condition) {
  const absl::StatusOr<ValueInfo> info = InfoOf(condition);
  if (!info.ok()) {
    return absl::Status(info.status().code(), absl::StrCat("the condition ", info.status().message()));
  }
  if (info->dtype != DType::kBool || NumElements(info->shape) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("the condition '", condition, "' is ", DTypeName(info->dtype), " ",
                                                   ShapeString(info->shape), "; it has to be one bool"));
  }
  LS_ASSIGN_OR_RETURN(const Tensor* known, KnownElements(condition));
  return known == nullptr ? std::nullopt : std::optional(known->elements<bool>()[0]);
}

// And, Or: where one side is known, it decides, or the other one does. So a loop that counts and looks at the data
// ends.
absl::Status OnnxImporter::ReadLogical(Call& call) {
  const bool deciding = call.node->op_type() == "Or";
  if (call.node->input_size() != 2) return ReadGeneric(call);
  for (const int side : {0, 1}) {
    LS_ASSIGN_OR_RETURN(const Tensor* known, KnownElements(call.node->input(side)));
    LS_ASSIGN_OR_RETURN(const ValueInfo other, InfoOf(call.node->input(1 - side)));
    if (known == nullptr || known->dtype() != DType::kBool || other.dtype != DType::kBool) continue;
    if (known->num_elements() != 1 || NumElements(other.shape) != 1) continue;
    if (known->shape().size() > other.shape.size()) continue;
    if (known->elements<bool>()[0] != deciding) {
      return Alias(call.node->output(0), call.node->input(1 - side)), absl::OkStatus();
    }
    LS_ASSIGN_OR_RETURN(Tensor decided, NewConstant(DType::kBool, other.shape));
    decided.elements<bool>()[0] = deciding;
    return Define(call.node->output(0), std::move(decided)), absl::OkStatus();
  }
  return ReadGeneric(call);
}

// False where the condition of the branch, or of one around it, is known and is another one: its nodes may then not
// even fit their operands.
absl::StatusOr<bool> OnnxImporter::IsTaken(int branch) {
  if (branch < 0) return true;
  const Branch& own = branches_[static_cast<size_t>(branch)];
  LS_ASSIGN_OR_RETURN(const bool outer, IsTaken(own.outer));
  if (!outer) return false;
  LS_ASSIGN_OR_RETURN(const std::optional<bool> known, KnownCondition(own.condition));
  return known.value_or(own.when) == own.when;
}

// A value from outside, in a branch. What cannot carry a gradient goes in as it is.
absl::Status OnnxImporter::ReadBranchInput(Call& call) {
  const std::string& condition = call.node->input(0);
  const std::string& x = call.node->input(1);
  LS_ASSIGN_OR_RETURN(const Value* value, Find(x));
  const bool plain = value->constant != nullptr || value->is_sequence;
  LS_ASSIGN_OR_RETURN(const std::optional<bool> known, KnownCondition(condition));
  if (plain || known.has_value()) return Alias(call.node->output(0), x), absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const ValueInfo info, InfoOf(x));
  if (!IsFloating(info.dtype)) return Alias(call.node->output(0), x), absl::OkStatus();
  LS_ASSIGN_OR_RETURN(Tensor zero, NewConstant(info.dtype, {}));
  const std::string name = Fresh(call.label + ".zero");
  Define(name, std::move(zero));
  const bool when = branches_[static_cast<size_t>(branch_)].when;
  Choice choice(this, call);
  return when ? choice.Give(condition, x, name) : choice.GiveElse(condition, x, name);
}

absl::Status OnnxImporter::ReadBranchOutput(Call& call) {
  const std::string& condition = call.node->input(0);
  LS_ASSIGN_OR_RETURN(const std::optional<bool> known, KnownCondition(condition));
  if (known.has_value()) {
    const std::string& result = call.node->input(*known ? 1 : 2);
    LS_RETURN_IF_ERROR(Find(result).status());
    return Alias(call.node->output(0), result), absl::OkStatus();
  }
  LS_ASSIGN_OR_RETURN(const ValueInfo then, InfoOf(call.node->input(1)));
  LS_ASSIGN_OR_RETURN(const ValueInfo otherwise, InfoOf(call.node->input(2)));
  if (then != otherwise) {
    return absl::UnimplementedError(absl::StrCat("one branch gives ", DTypeName(then.dtype), " ",
                                                 ShapeString(then.shape), ", the other one ",
                                                 DTypeName(otherwise.dtype), " ", ShapeString(otherwise.shape),
                                                 ": where the data decide, both have to give the same type and shape"));
  }
  return Choice(this, call).Give(condition, call.node->input(1), call.node->input(2));
}

}  // namespace lockstep
