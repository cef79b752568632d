#include "common/job/job.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/hook_rules.h"
#include "common/job/resolve.h"
#include "common/job/yaml_reader.h"
#include "common/storage/host_file.h"

namespace lockstep {

namespace {

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is a directory; give the job file in it"));
  }
  absl::StatusOr<std::string> text = ReadHostFile(path);
  if (text.ok()) return text;
  return absl::Status(text.status().code(), absl::StrCat("the job file cannot be read: ", text.status().message()));
}

JobReading ReadAll(absl::string_view text, const std::string& path, absl::Span<const std::string> overrides) {
  JobReading reading;
  auto& [spec, places, mistakes] = reading;
  places = JobPlaces(path);
  job::ReadYaml(text, places, spec, mistakes);
  if (mistakes.IsInvalid("")) return reading;
  for (const std::string& assignment : overrides) job::ReadOverride(assignment, places, spec, mistakes);
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) {
    mistakes.Add("", absl::InternalError(absl::StrCat(path, ": the current directory is gone: ", error.message())));
    return reading;
  }
  job::FillDefaults(places, absolute.parent_path().string(), spec, mistakes);
  job::ResolveHooks(absolute.parent_path().string(), spec);
  job::Validate(places, spec, mistakes);
  job::ValidateHooks(places, spec, mistakes);
  return reading;
}

absl::StatusOr<JobSpec> Whole(JobReading reading) {
  if (!reading.mistakes.empty()) return reading.mistakes.status();
  return std::move(reading.spec);
}

}  // namespace

std::string JobPlaces::Of(const std::string& key) const {
  for (std::string above = key;;) {
    const auto it = places_.find(above);
    if (it != places_.end()) return it->second;
    const size_t dot = above.rfind('.');
    if (dot == std::string::npos) return file_;
    above.resize(dot);
  }
}

absl::Status JobPlaces::Error(const std::string& key, absl::string_view message) const {
  return absl::InvalidArgumentError(absl::StrCat(Of(key), ": ", key, ": ", message));
}

JobReading ReadJob(const std::string& path, absl::Span<const std::string> overrides) {
  const absl::StatusOr<std::string> text = ReadText(path);
  if (text.ok()) return ReadAll(*text, path, overrides);
  JobReading reading;
  reading.mistakes.Add("", text.status());
  return reading;
}

absl::StatusOr<JobSpec> LoadJob(const std::string& path, absl::Span<const std::string> overrides) {
  return Whole(ReadJob(path, overrides));
}

absl::StatusOr<JobSpec> ParseJob(absl::string_view text, const std::string& path,
                                 absl::Span<const std::string> overrides) {
  return Whole(ReadAll(text, path, overrides));
}

}  // namespace lockstep
