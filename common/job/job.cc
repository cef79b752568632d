#include "common/job/job.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/job/resolve.h"
#include "common/job/yaml_reader.h"
#include "common/status/status_macros.h"

namespace lockstep {

absl::StatusOr<JobSpec> LoadJob(const std::string& path, absl::Span<const std::string> overrides) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory; give the job file in it"));
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || (!text && !text.str().empty())) {
    const int cause = errno == 0 ? EIO : errno;
    return absl::ErrnoToStatus(cause, absl::StrCat("job file ", path, " cannot be read"));
  }
  return ParseJob(text.str(), path, overrides);
}

absl::StatusOr<JobSpec> ParseJob(absl::string_view text, const std::string& path,
                                 absl::Span<const std::string> overrides) {
  job::Places places(path);
  JobSpec spec;
  LS_RETURN_IF_ERROR(job::ReadYaml(text, places, spec));
  for (const std::string& assignment : overrides) LS_RETURN_IF_ERROR(job::ReadOverride(assignment, places, spec));
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) return absl::InternalError(absl::StrCat(path, ": the current directory is gone: ", error.message()));
  LS_RETURN_IF_ERROR(job::FillDefaults(places, absolute.parent_path().string(), spec));
  LS_RETURN_IF_ERROR(job::Validate(places, spec));
  return spec;
}

}  // namespace lockstep
