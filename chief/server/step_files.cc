#include "chief/server/step_files.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {
namespace {

constexpr absl::string_view kBeforeStep = "-step-";

}  // namespace

std::optional<int64_t> StepInName(absl::string_view name) {
  const size_t at = name.rfind(kBeforeStep);
  if (at == absl::string_view::npos) return std::nullopt;
  const absl::string_view rest = name.substr(at + kBeforeStep.size());
  const auto digits = std::find_if_not(rest.begin(), rest.end(), absl::ascii_isdigit) - rest.begin();
  int64_t step = 0;
  return absl::SimpleAtoi(rest.substr(0, digits), &step) ? std::optional(step) : std::nullopt;
}

absl::Status StepFiles::Written() {
  if (count_.has_value() && ++*count_ <= most_) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage_.List(folder_));
  std::vector<std::pair<int64_t, std::string>> files;
  for (const DirectoryEntry& entry : entries) {
    const std::optional<int64_t> step = StepInName(entry.name);
    if (step.has_value() && !entry.is_directory) files.emplace_back(*step, entry.name);
  }
  count_ = files.size();
  if (files.size() <= most_) return absl::OkStatus();
  const size_t gone = files.size() - most_ + most_ / 8;
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i < gone; ++i) {
    LS_RETURN_IF_ERROR(storage_.RemoveTree(absl::StrCat(folder_, "/", files[i].second)));
    --*count_;
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
