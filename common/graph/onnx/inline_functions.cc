#include "common/graph/onnx/inline_functions.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
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

class Inliner {
 public:
  explicit Inliner(const onnx::ModelProto& model) {
    for (const onnx::OperatorSetProto& set : model.opset_import()) opsets_[set.domain()] = set.version();
    for (const onnx::FunctionProto& function : model.functions()) {
      functions_[{function.domain(), function.name(), function.overload()}] = &function;
    }
  }

  // Appends `node` to `out`, or what it calls. `names` holds the names of the surrounding call's formal values.
  absl::Status Append(const onnx::NodeProto& node, const std::string& prefix,
                      const std::map<std::string, std::string>& names, const Attributes* attributes, int depth,
                      onnx::GraphProto* out) {
    onnx::NodeProto bound = Bind(node, prefix, names, attributes);
    if (depth > 0) LS_RETURN_IF_ERROR(Spend(bound.ByteSizeLong()));
    const auto function = functions_.find({node.domain(), node.op_type(), node.overload()});
    if (function != functions_.end()) return Call(bound, *function->second, depth, out);
    *out->add_node() = std::move(bound);
    return absl::OkStatus();
  }

 private:
  // Counts a node or a call inside a function, and the bytes that it takes.
  absl::Status Spend(size_t bytes) {
    written_ += bytes;
    if (++copied_ <= kMaxCalls && written_ <= kMaxBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the functions of the model, written out, have more than ",
                                                   kMaxCalls, " nodes or ", kMaxBytes,
                                                   " bytes. Export the model without functions"));
  }

  static onnx::NodeProto Bind(const onnx::NodeProto& node, const std::string& prefix,
                              const std::map<std::string, std::string>& names, const Attributes* attributes) {
    const auto rename = [&](const std::string& name) {
      if (name.empty()) return name;
      const auto formal = names.find(name);
      return formal != names.end() ? formal->second : prefix + name;
    };
    onnx::NodeProto bound = node;
    for (std::string& input : *bound.mutable_input()) input = rename(input);
    for (std::string& output : *bound.mutable_output()) output = rename(output);
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

  absl::Status Call(const onnx::NodeProto& call, const onnx::FunctionProto& function, int depth,
                    onnx::GraphProto* out) {
    if (depth >= kMaxDepth) {
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
    std::map<std::string, std::string> names;
    for (int i = 0; i < function.input_size(); ++i) {
      names[function.input(i)] = i < call.input_size() ? call.input(i) : "";
    }
    for (int i = 0; i < call.output_size(); ++i) {
      if (!call.output(i).empty()) names[function.output(i)] = call.output(i);
    }
    Attributes attributes;
    for (const onnx::AttributeProto& attribute : function.attribute_proto()) attributes[attribute.name()] = &attribute;
    for (const onnx::AttributeProto& attribute : call.attribute()) attributes[attribute.name()] = &attribute;
    const std::string own = call.name().empty() ? absl::StrCat("call_", ++unnamed_) : call.name();
    for (const onnx::NodeProto& node : function.node()) {
      LS_RETURN_IF_ERROR(Append(node, own + "/", names, &attributes, depth + 1, out));
    }
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
  int unnamed_ = 0;
  int64_t copied_ = 0;
  size_t written_ = 0;
};

}  // namespace

absl::StatusOr<onnx::GraphProto> InlineFunctions(const onnx::ModelProto& model) {
  onnx::GraphProto flat;
  Inliner inliner(model);
  for (const onnx::NodeProto& node : model.graph().node()) {
    LS_RETURN_IF_ERROR(inliner.Append(node, "", {}, nullptr, 0, &flat));
  }
  return flat;
}

}  // namespace lockstep
