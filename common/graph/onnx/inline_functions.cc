#include "common/graph/onnx/inline_functions.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr int kMaxDepth = 32;
// What inlining may write, in the nodes that it copies and in the calls that it follows: functions that call others
// more than once grow with every level.
constexpr int64_t kMaxCalls = 1 << 17;
constexpr size_t kMaxBytes = size_t{1} << 30;

using FunctionKey = std::tuple<std::string, std::string, std::string>;  // domain, name, overload
using Attributes = std::map<std::string, const onnx::AttributeProto*>;
using Names = std::map<std::string, std::string>;

// Where nodes stand: how their values are called in the flat model, what attributes they are given, and in which
// branch.
struct Scope {
  std::string prefix;                      // of names that `names` does not hold
  Names names;                             // formal values of a call; all values of a branch
  const Attributes* attributes = nullptr;  // of the call; null outside of functions
  int branch = -1;
  int depth = 0;

  std::string Rename(const std::string& name) const {
    if (name.empty()) return name;
    const auto formal = names.find(name);
    return formal != names.end() ? formal->second : prefix + name;
  }
};

const onnx::GraphProto* GraphOf(const onnx::NodeProto& node, absl::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name && attribute.has_g()) return &attribute.g();
  }
  return nullptr;
}

bool IsIf(const onnx::NodeProto& node) {
  return node.op_type() == "If" && (node.domain().empty() || node.domain() == "ai.onnx");
}

// The values that a graph gives itself.
std::set<std::string> GivenBy(const onnx::GraphProto& graph) {
  std::set<std::string> given;
  for (const onnx::TensorProto& tensor : graph.initializer()) given.insert(tensor.name());
  for (const onnx::NodeProto& node : graph.node()) given.insert(node.output().begin(), node.output().end());
  return given;
}

// The values that a graph reads from outside, also by graphs in its nodes.
std::set<std::string> ReadBy(const onnx::GraphProto& graph) {
  std::set<std::string> read;
  for (const onnx::NodeProto& node : graph.node()) {
    read.insert(node.input().begin(), node.input().end());
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) read.merge(ReadBy(attribute.g()));
    }
  }
  for (const onnx::ValueInfoProto& output : graph.output()) read.insert(output.name());
  for (const std::string& given : GivenBy(graph)) read.erase(given);
  read.erase("");
  return read;
}

// The value of a condition that the file states.
std::optional<bool> StatedCondition(const onnx::TensorProto& tensor) {
  if (tensor.data_type() != onnx::BOOL) return std::nullopt;
  if (tensor.raw_data().size() == 1) return tensor.raw_data()[0] != 0;
  if (tensor.int32_data_size() == 1) return tensor.int32_data(0) != 0;
  return std::nullopt;
}

class Flattener {
 public:
  explicit Flattener(const onnx::ModelProto& model) {
    for (const onnx::OperatorSetProto& set : model.opset_import()) opsets_[set.domain()] = set.version();
    for (const onnx::FunctionProto& function : model.functions()) {
      functions_[{function.domain(), function.name(), function.overload()}] = &function;
    }
    for (const onnx::TensorProto& tensor : model.graph().initializer()) {
      taken_.insert(tensor.name());
      if (const std::optional<bool> stated = StatedCondition(tensor)) stated_[tensor.name()] = *stated;
    }
  }

  // Appends `node`, what it calls or what its branches hold.
  absl::Status Append(const onnx::NodeProto& node, const Scope& scope) {
    if (node.domain() == kBranchDomain) {
      return absl::InvalidArgumentError(
          absl::StrCat("node '", node.name(), "': no file may use the domain '", kBranchDomain, "'"));
    }
    onnx::NodeProto bound = Bind(node, scope);
    if (scope.depth > 0) LS_RETURN_IF_ERROR(Spend(bound.ByteSizeLong()));
    const auto function = functions_.find({node.domain(), node.op_type(), node.overload()});
    if (function != functions_.end()) return Call(bound, *function->second, scope);
    if (IsIf(node)) return Decide(bound, scope);
    Keep(std::move(bound), scope.branch);
    return absl::OkStatus();
  }

  FlatModel Take() { return std::move(flat_); }

 private:
  void Keep(onnx::NodeProto node, int branch) {
    if (branch >= 0 && node.output_size() > 0) flat_.branch_of[node.output(0)] = branch;
    *flat_.nodes.add_node() = std::move(node);
  }

  // Counts a node or a call inside a function, and the bytes that it takes.
  absl::Status Spend(size_t bytes) {
    written_ += bytes;
    if (++copied_ <= kMaxCalls && written_ <= kMaxBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the functions and branches of the model, written out, have more than ", kMaxCalls, " nodes or ",
                     kMaxBytes, " bytes. Export the model without functions and branches"));
  }

  static onnx::NodeProto Bind(const onnx::NodeProto& node, const Scope& scope) {
    const std::string& prefix = scope.prefix;
    const Attributes* const attributes = scope.attributes;
    onnx::NodeProto bound = node;
    for (std::string& input : *bound.mutable_input()) input = scope.Rename(input);
    for (std::string& output : *bound.mutable_output()) output = scope.Rename(output);
    if (!node.name().empty() || !prefix.empty()) bound.set_name(prefix + node.name());
    if (attributes == nullptr) return bound;
    bound.clear_attribute();
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.ref_attr_name().empty()) {
        *bound.add_attribute() = attribute;
        continue;
      }
      const auto given = attributes->find(attribute.ref_attr_name());
      if (given == attributes->end()) continue;  // neither given nor by default: the op's own default holds
      *bound.add_attribute() = *given->second;
      bound.mutable_attribute()->rbegin()->set_name(attribute.name());
    }
    return bound;
  }

  absl::Status Call(const onnx::NodeProto& call, const onnx::FunctionProto& function, const Scope& outer) {
    if (outer.depth >= kMaxDepth) {
      return absl::InvalidArgumentError(absl::StrCat("function '", function.name(), "' calls itself"));
    }
    if (call.input_size() > function.input_size() || call.output_size() > function.output_size()) {
      return absl::InvalidArgumentError(absl::StrCat("node '", call.name(), "' gives function '", function.name(),
                                                     "' more inputs or outputs than it has"));
    }
    for (const onnx::OperatorSetProto& set : function.opset_import()) {
      const auto used = opsets_.find(set.domain());
      if (used != opsets_.end() && used->second != set.version()) {
        return absl::InvalidArgumentError(absl::StrCat("function '", function.name(), "' is written in opset ",
                                                       set.version(), " of '", set.domain(), "', the model in opset ",
                                                       used->second, "; export both in one"));
      }
    }
    LS_RETURN_IF_ERROR(Spend(Signature(function)));
    Scope scope{"", {}, nullptr, outer.branch, outer.depth + 1};
    Names& names = scope.names;
    for (int i = 0; i < function.input_size(); ++i) {
      names[function.input(i)] = i < call.input_size() ? call.input(i) : "";
    }
    for (int i = 0; i < call.output_size(); ++i) {
      if (!call.output(i).empty()) names[function.output(i)] = call.output(i);
    }
    Attributes attributes;
    for (const onnx::AttributeProto& attribute : function.attribute_proto()) attributes[attribute.name()] = &attribute;
    for (const onnx::AttributeProto& attribute : call.attribute()) attributes[attribute.name()] = &attribute;
    scope.prefix = (call.name().empty() ? absl::StrCat("call_", ++unnamed_) : call.name()) + "/";
    scope.attributes = &attributes;
    for (const onnx::NodeProto& node : function.node()) LS_RETURN_IF_ERROR(Append(node, scope));
    return absl::OkStatus();
  }

  // Appends the branches of an If, and what chooses between their results.
  absl::Status Decide(const onnx::NodeProto& node, const Scope& outer) {
    const std::string own = node.name().empty() ? absl::StrCat("if_", ++unnamed_) : node.name();
    const auto wrong = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("node '", own, "' (If) ", what));
    };
    if (outer.depth >= kMaxDepth) return wrong("stands too deep in other ones");
    const onnx::GraphProto* const sides[] = {GraphOf(node, "then_branch"), GraphOf(node, "else_branch")};
    if (node.input_size() != 1 || node.input(0).empty()) return wrong("takes one condition");
    for (const onnx::GraphProto* side : sides) {
      if (side == nullptr) return wrong("needs a then_branch and an else_branch");
      if (side->input_size() != 0) return wrong("has a branch with inputs of its own");
      if (side->output_size() != node.output_size()) return wrong("and its branches have other numbers of outputs");
    }
    const auto stated = stated_.find(node.input(0));
    std::vector<std::string> results[2];
    for (const bool then : {true, false}) {
      if (stated != stated_.end() && stated->second != then) continue;
      const bool decided = stated != stated_.end();
      LS_ASSIGN_OR_RETURN(results[then ? 0 : 1], AppendBranch(*sides[then ? 0 : 1], own + (then ? "/then/" : "/else/"),
                                                              node.input(0), then, decided, outer));
    }
    for (int i = 0; i < node.output_size(); ++i) {
      onnx::NodeProto choice;
      choice.set_name(absl::StrCat(own, "/", i));
      choice.add_output(node.output(i));
      if (stated != stated_.end()) {
        choice.set_op_type("Identity");
        choice.add_input(results[stated->second ? 0 : 1][static_cast<size_t>(i)]);
      } else {
        choice.set_domain(kBranchDomain);
        choice.set_op_type("BranchOutput");
        choice.add_input(node.input(0));
        for (const auto& side : results) choice.add_input(side[static_cast<size_t>(i)]);
      }
      if (!node.output(i).empty()) Keep(std::move(choice), outer.branch);
    }
    return absl::OkStatus();
  }

  // Appends the nodes of one branch. Returns the names of its outputs. `decided`: it is taken in any case.
  absl::StatusOr<std::vector<std::string>> AppendBranch(const onnx::GraphProto& graph, const std::string& prefix,
                                                        const std::string& condition, bool then, bool decided,
                                                        const Scope& outer) {
    Scope scope{prefix, {}, outer.attributes, outer.branch, outer.depth + 1};
    if (!decided) {
      scope.branch = static_cast<int>(flat_.branches.size());
      flat_.branches.push_back({condition, then, outer.branch});
    }
    for (const std::string& given : GivenBy(graph)) scope.names[given] = given.empty() ? "" : prefix + given;
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      LS_RETURN_IF_ERROR(Spend(tensor.ByteSizeLong()));
      std::string& name = scope.names[tensor.name()];
      if (taken_.insert(tensor.name()).second) name = tensor.name();
      flat_.initializers.push_back(tensor);
      flat_.initializers.back().set_name(name);
    }
    for (const std::string& read : ReadBy(graph)) {
      const std::string outside = outer.Rename(read);
      scope.names[read] = outside;
      if (decided) continue;
      onnx::NodeProto input;
      input.set_name(prefix + "outside/" + outside);
      input.set_domain(kBranchDomain);
      input.set_op_type("BranchInput");
      input.add_input(condition);
      input.add_input(outside);
      input.add_output(input.name());
      LS_RETURN_IF_ERROR(Spend(input.ByteSizeLong()));
      scope.names[read] = input.name();
      Keep(std::move(input), scope.branch);
    }
    for (const onnx::NodeProto& node : graph.node()) LS_RETURN_IF_ERROR(Append(node, scope));
    std::vector<std::string> outputs;
    for (const onnx::ValueInfoProto& output : graph.output()) outputs.push_back(scope.Rename(output.name()));
    return outputs;
  }

  // About what a call copies beside the nodes: the names of values and attributes.
  static size_t Signature(const onnx::FunctionProto& function) {
    constexpr size_t kEntry = 64;
    return kEntry * static_cast<size_t>(function.input_size() + function.output_size() +
                                        function.attribute_proto_size() + function.opset_import_size());
  }

  std::map<std::string, int64_t> opsets_;
  std::map<FunctionKey, const onnx::FunctionProto*> functions_;
  std::map<std::string, bool> stated_;  // initialisers that may be conditions
  std::set<std::string> taken_;         // names of initialisers
  FlatModel flat_;
  int unnamed_ = 0;
  int64_t copied_ = 0;
  size_t written_ = 0;
};

}  // namespace

absl::StatusOr<FlatModel> FlattenModel(const onnx::ModelProto& model) {
  Flattener flattener(model);
  for (const onnx::NodeProto& node : model.graph().node()) {
    LS_RETURN_IF_ERROR(flattener.Append(node, {}));
  }
  return flattener.Take();
}

}  // namespace lockstep
