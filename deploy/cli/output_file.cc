#include "deploy/cli/output_file.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::cli {

absl::StatusOr<OutputFile> OutputFile::At(const std::string& path) {
  const std::filesystem::path file(path);
  if (!file.has_filename()) return absl::InvalidArgumentError(absl::StrCat("'", path, "' is no name of a file"));
  OutputFile output;
  LS_ASSIGN_OR_RETURN(output.folder, LocalStorage::Open(file.has_parent_path() ? file.parent_path().string() : "."));
  output.name = file.filename().string();
  return output;
}

}  // namespace lockstep::cli
