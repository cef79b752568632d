#include "common/graph/onnx/signature.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lockstep {
namespace {

constexpr absl::string_view kKey = "pkg.torch.export.ExportedProgram.graph_signature";

// What stands between the quotes of target='...'; empty where there is none.
std::string TargetOf(absl::string_view line) {
  constexpr absl::string_view kTarget = "target='";
  const size_t begin = line.find(kTarget);
  if (begin == absl::string_view::npos) return "";
  line.remove_prefix(begin + kTarget.size());
  return std::string(line.substr(0, line.find('\'')));
}

// One line per input: "p_fc_weight: PARAMETER target='fc.weight'". Outputs follow under "# outputs":
// "getitem_3: BUFFER_MUTATION target='bn.running_mean'".
OnnxSignature Parse(absl::string_view text) {
  OnnxSignature signature;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    std::string target = TargetOf(line);
    if (target.empty()) continue;
    const std::string value(absl::StripAsciiWhitespace(line.substr(0, line.find(':'))));
    if (absl::StrContains(line, ": PARAMETER ")) {
      signature.parameters.insert(target);
      signature.placeholders.emplace(std::move(target), value);
    } else if (absl::StrContains(line, ": BUFFER_MUTATION ")) {
      signature.mutations.emplace(std::move(target), value);
    } else if (absl::StrContains(line, ": PARAMETER_MUTATION ")) {
      signature.changed_parameters.insert(std::move(target));
    } else {
      signature.buffer_placeholders.emplace(target, value);
      const bool kept = absl::StrContains(line, ": BUFFER ") && !absl::StrContains(line, "persistent=False");
      (kept ? signature.buffers : signature.constants).insert(std::move(target));
    }
  }
  return signature;
}

absl::string_view Property(const onnx::NodeProto& node, absl::string_view key) {
  for (const onnx::StringPair& property : node.metadata_props()) {
    if (property.key() == key) return property.value();
  }
  return "";
}

// What stands between the quotes of "['', 'encoder.0', 'linear_3']".
std::vector<absl::string_view> Quoted(absl::string_view list) {
  const std::vector<absl::string_view> parts = absl::StrSplit(list, '\'');
  std::vector<absl::string_view> names;
  for (size_t i = 1; i + 1 < parts.size(); i += 2) names.push_back(parts[i]);
  return names;
}

}  // namespace

std::optional<OnnxSignature> FindSignature(const onnx::ModelProto& model) {
  for (const auto* properties : {&model.graph().metadata_props(), &model.metadata_props()}) {
    for (const onnx::StringPair& property : *properties) {
      if (property.key() == kKey) return Parse(property.value());
    }
  }
  return std::nullopt;
}

absl::string_view NodeCall(const onnx::NodeProto& node) { return Property(node, "pkg.torch.onnx.fx_node"); }

std::vector<std::string> CallArguments(absl::string_view call) {
  constexpr absl::string_view kBegin = "(args = (";
  const size_t begin = call.find(kBegin);
  std::vector<std::string> arguments;
  if (begin == absl::string_view::npos) return arguments;
  call.remove_prefix(begin + kBegin.size());
  int depth = 0;
  size_t from = 0;
  for (size_t i = 0; i < call.size() && depth >= 0; ++i) {
    if (call[i] == '(' || call[i] == '[') ++depth;
    if (call[i] == ')' || call[i] == ']') --depth;
    if (depth < 0 || (depth == 0 && call[i] == ',')) {
      const absl::string_view argument = absl::StripAsciiWhitespace(call.substr(from, i - from));
      if (!argument.empty()) arguments.emplace_back(argument);
      from = i + 1;
    }
  }
  return arguments;
}

std::vector<std::string> ValuesOf(const std::vector<std::string>& arguments) {
  std::vector<std::string> values;
  for (const std::string& argument : arguments) {
    for (size_t at = argument.find('%'); at != std::string::npos; at = argument.find('%', at + 1)) {
      size_t end = at + 1;
      while (end < argument.size() && (absl::ascii_isalnum(argument[end]) || argument[end] == '_')) ++end;
      values.push_back(argument.substr(at + 1, end - at - 1));
    }
  }
  return values;
}

// "['', 'encoder.0', 'encoder.0.linear', 'linear_3']": the model, the layers inwards, the call.
std::string NodeLayer(const onnx::NodeProto& node) {
  const std::vector<absl::string_view> names = Quoted(Property(node, "pkg.torch.onnx.name_scopes"));
  return names.size() < 2 ? "" : std::string(names[names.size() - 2]);
}

// The classes stand in the same order, the call's target last.
std::vector<LayerOfNode> LayersOf(const onnx::NodeProto& node) {
  const std::vector<absl::string_view> names = Quoted(Property(node, "pkg.torch.onnx.name_scopes"));
  const std::vector<absl::string_view> types = Quoted(Property(node, "pkg.torch.onnx.class_hierarchy"));
  std::vector<LayerOfNode> layers;
  if (names.size() != types.size()) return layers;
  for (size_t i = 0; i + 1 < names.size(); ++i) layers.push_back({std::string(names[i]), std::string(types[i])});
  return layers;
}

bool CallTakes(absl::string_view call, absl::string_view placeholder) {
  const std::string name = absl::StrCat("%", placeholder);
  for (size_t at = call.find(name); at != absl::string_view::npos; at = call.find(name, at + 1)) {
    const size_t end = at + name.size();
    if (end == call.size() || !(absl::ascii_isalnum(call[end]) || call[end] == '_')) return true;
  }
  return false;
}

bool CallsDetach(const onnx::NodeProto& node) {
  return node.op_type() == "Identity" && absl::StrContains(NodeCall(node), "[target=torch.ops.aten.detach");
}

bool ComesFromBlock(const onnx::NodeProto& node) {
  return absl::StartsWith(Property(node, "pkg.torch.onnx.stack_trace"), "File \"<eval_with_key>");
}

}  // namespace lockstep
