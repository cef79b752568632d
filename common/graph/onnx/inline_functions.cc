#include "common/graph/onnx/inline_functions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/graph/onnx/node_fields.h"
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
  const onnx::AttributeProto* const attribute = FindAttribute(node, name);
  return attribute != nullptr && attribute->has_g() ? &attribute->g() : nullptr;
}

bool IsIf(const onnx::NodeProto& node) { return node.op_type() == "If" && IsOfOnnx(node); }

bool IsLoop(const onnx::NodeProto& node) {
  return (node.op_type() == "Loop" || node.op_type() == "Scan") && IsOfOnnx(node);
}

// The values that a graph gives itself, or is given by its node.
std::set<std::string> GivenBy(const onnx::GraphProto& graph) {
  std::set<std::string> given;
  for (const onnx::ValueInfoProto& input : graph.input()) given.insert(input.name());
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
    for (const onnx::ValueInfoProto& input : model.graph().input()) names_.insert(input.name());
    for (const onnx::NodeProto& node : model.graph().node()) names_.insert(node.output().begin(), node.output().end());
    for (const onnx::TensorProto& tensor : model.graph().initializer()) {
      taken_.insert(tensor.name());
      names_.insert(tensor.name());
      if (const std::optional<bool> stated = StatedCondition(tensor)) stated_[tensor.name()] = *stated;
    }
  }

  // Appends `node`, what it calls or what the graphs in it hold.
  absl::Status Append(const onnx::NodeProto& node, const Scope& scope) {
    if (node.domain() == kBranchDomain || node.domain() == kLoopDomain) {
      return absl::InvalidArgumentError(
          absl::StrCat("node '", node.name(), "': no file may use the domain '", node.domain(), "'"));
    }
    onnx::NodeProto bound = Bind(node, scope);
    if (scope.depth > 0) LS_RETURN_IF_ERROR(Spend(bound.ByteSizeLong()));
    const auto function = functions_.find({node.domain(), node.op_type(), node.overload()});
    if (function != functions_.end()) return Call(bound, *function->second, scope);
    if (IsIf(node)) return Decide(bound, scope);
    if (IsLoop(node)) return Repeat(bound, scope);
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
    scope.prefix = PrefixFor(call.name().empty() ? absl::StrCat("call_", ++unnamed_) : call.name());
    scope.attributes = &attributes;
    for (const onnx::NodeProto& node : function.node()) {
      for (const std::string& output : node.output()) names_.insert(scope.Rename(output));
    }
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
    const std::string prefix = PrefixFor(own);
    std::vector<std::string> results[2];
    for (const bool then : {true, false}) {
      if (stated != stated_.end() && stated->second != then) continue;
      const bool decided = stated != stated_.end();
      const int branch = decided ? outer.branch : NewBranch({node.input(0), then, outer.branch});
      LS_ASSIGN_OR_RETURN(results[then ? 0 : 1],
                          AppendGraph(*sides[then ? 0 : 1], prefix + (then ? "then/" : "else/"), branch, outer));
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

  // Appends the body of a Loop or Scan, between a LoopBegin and a LoopEnd.
  absl::Status Repeat(onnx::NodeProto node, const Scope& outer) {
    const std::string own = node.name().empty() ? absl::StrCat("loop_", ++unnamed_) : node.name();
    const onnx::GraphProto* const found = GraphOf(node, "body");
    const auto wrong = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat("node '", own, "' (", node.op_type(), ") ", what));
    };
    if (outer.depth >= kMaxDepth) return wrong("stands too deep in other ones");
    if (found == nullptr) return wrong("has no body");
    if (node.output_size() == 0) return wrong("has no output");
    const onnx::GraphProto body = *found;
    for (const onnx::ValueInfoProto& input : body.input()) {
      if (input.name().empty()) return wrong("has a body with an input without a name");
    }
    auto& attributes = *node.mutable_attribute();
    const auto is_graph = [](const onnx::AttributeProto& attribute) { return attribute.has_g(); };
    attributes.erase(std::remove_if(attributes.begin(), attributes.end(), is_graph), attributes.end());
    node.set_name(own);
    const auto marker = [&](absl::string_view kind) {
      onnx::NodeProto mark;
      mark.set_name(absl::StrCat(own, "/", kind));
      mark.set_op_type(std::string(kind));
      mark.set_domain(kLoopDomain);
      onnx::AttributeProto* const number = mark.add_attribute();
      number->set_name(kLoopNumber);
      number->set_type(onnx::AttributeProto::INT);
      number->set_i(static_cast<int64_t>(flat_.loops.size()));
      return mark;
    };
    onnx::NodeProto begin = marker("LoopBegin"), end = marker("LoopEnd");
    const std::string prefix = PrefixFor(own);
    const std::string running = prefix + "running";
    names_.insert(running);
    *begin.mutable_input() = node.input();
    begin.add_output(running);
    for (const onnx::ValueInfoProto& input : body.input()) begin.add_output(GivenName(prefix, input.name()));
    *end.mutable_output() = node.output();
    flat_.loops.push_back(std::move(node));
    Keep(std::move(begin), outer.branch);
    LS_ASSIGN_OR_RETURN(const std::vector<std::string> given,
                        AppendGraph(body, prefix, NewBranch({running, true, outer.branch}), outer));
    for (const std::string& name : given) end.add_input(name);
    Keep(std::move(end), outer.branch);
    return absl::OkStatus();
  }

  // `name`, or a variation of it, with a slash: what stands in front of the names within a node. No name outside of the
  // node begins so.
  std::string PrefixFor(std::string name) {
    const auto begins = [this](const std::string& prefix) {
      const auto next = names_.lower_bound(prefix);
      return next != names_.end() && next->compare(0, prefix.size(), prefix) == 0;
    };
    while (begins(name + "/")) name += "_";
    return name + "/";
  }

  int NewBranch(Branch branch) {
    flat_.branches.push_back(std::move(branch));
    return static_cast<int>(flat_.branches.size()) - 1;
  }

  // What LoopBegin gives as the body's input `name`.
  static std::string GivenName(const std::string& prefix, const std::string& name) {
    return absl::StrCat(prefix, "given/", name);
  }

  // Appends the nodes of a graph within a node. Returns the names of its outputs. Unless `branch` is that of `outer`,
  // what enters the graph enters by the branch's condition.
  absl::StatusOr<std::vector<std::string>> AppendGraph(const onnx::GraphProto& graph, const std::string& prefix,
                                                       int branch, const Scope& outer) {
    Scope scope{prefix, {}, outer.attributes, branch, outer.depth + 1};
    for (const std::string& given : GivenBy(graph)) {
      scope.names[given] = given.empty() ? "" : prefix + given;
      names_.insert(scope.names[given]);
    }
    for (const onnx::TensorProto& tensor : graph.initializer()) {
      LS_RETURN_IF_ERROR(Spend(tensor.ByteSizeLong()));
      std::string& name = scope.names[tensor.name()];
      if (taken_.insert(tensor.name()).second) name = tensor.name();
      flat_.initializers.push_back(tensor);
      flat_.initializers.back().set_name(name);
    }
    for (const onnx::ValueInfoProto& input : graph.input()) {
      LS_RETURN_IF_ERROR(Enter(GivenName(prefix, input.name()), scope.names[input.name()], branch));
    }
    for (const std::string& read : ReadBy(graph)) {
      const std::string outside = outer.Rename(read);
      scope.names[read] = branch == outer.branch ? outside : prefix + "outside/" + outside;
      if (branch != outer.branch) LS_RETURN_IF_ERROR(Enter(outside, scope.names[read], branch));
    }
    for (const onnx::NodeProto& node : graph.node()) LS_RETURN_IF_ERROR(Append(node, scope));
    std::vector<std::string> outputs;
    for (const onnx::ValueInfoProto& output : graph.output()) outputs.push_back(scope.Rename(output.name()));
    return outputs;
  }

  // Appends what makes `outside` the value `inside` of a branch.
  absl::Status Enter(const std::string& outside, const std::string& inside, int branch) {
    onnx::NodeProto input;
    input.set_name(inside);
    input.set_domain(kBranchDomain);
    input.set_op_type("BranchInput");
    input.add_input(flat_.branches[static_cast<size_t>(branch)].condition);
    input.add_input(outside);
    input.add_output(inside);
    LS_RETURN_IF_ERROR(Spend(input.ByteSizeLong()));
    Keep(std::move(input), branch);
    return absl::OkStatus();
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
  std::set<std::string> names_;         // of values so far, as in the flat model
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
