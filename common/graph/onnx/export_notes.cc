#include "common/graph/onnx/export_notes.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace lockstep {

absl::StatusOr<std::optional<ExportNotes>> FindExportNotes(const onnx::ModelProto& model) {
  std::optional<ExportNotes> notes;
  for (const onnx::StringPair& property : model.metadata_props()) {
    const bool frozen = property.key() == "lockstep.frozen";
    if (!frozen && property.key() != "lockstep.tied") continue;
    if (!notes.has_value()) notes.emplace();
    for (const absl::string_view line : absl::StrSplit(property.value(), '\n', absl::SkipEmpty())) {
      if (frozen) {
        notes->frozen.emplace(line);
        continue;
      }
      const std::vector<absl::string_view> names = absl::StrSplit(line, '=');
      if (names.size() != 2 || names[0].empty() || names[1].empty() || names[0] == names[1]) {
        return absl::InvalidArgumentError(
            absl::StrCat("the file's note lockstep.tied has the line '", line, "', SECOND=FIRST was expected"));
      }
      notes->tied.emplace(names[0], names[1]);
    }
  }
  return notes;
}

}  // namespace lockstep
