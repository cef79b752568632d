#include "common/graph/onnx/signature.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

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

// One line per input: "p_fc_weight: PARAMETER target='fc.weight'". Outputs follow under "# outputs".
OnnxSignature Parse(absl::string_view text) {
  OnnxSignature signature;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StartsWith(line, "# outputs")) break;
    std::string target = TargetOf(line);
    if (target.empty()) continue;
    if (absl::StrContains(line, ": PARAMETER ")) signature.parameters.insert(std::move(target));
    if (absl::StrContains(line, ": BUFFER ") && !absl::StrContains(line, "persistent=False")) {
      signature.buffers.insert(std::move(target));
    }
  }
  return signature;
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

}  // namespace lockstep
