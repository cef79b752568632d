#include "chief/stats/history_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr absl::string_view kSuffix = ".jsonl";
constexpr uint64_t kLongestFile = uint64_t{64} << 20;

// Sorted by name, which is their order.
absl::StatusOr<std::vector<std::string>> ListFiles(const Storage& storage) {
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage.List(kHistoryFolder));
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_directory && absl::EndsWith(entry.name, kSuffix)) names.push_back(entry.name);
  }
  return names;
}

}  // namespace

std::string HistoryLine(const WorkerInterval& interval) {
  return absl::StrCat(nlohmann::ordered_json::parse(ToSparseJson(interval)).dump(), "\n");
}

absl::Status HistoryFiles::Append(absl::string_view lines) {
  if (lines.empty()) return absl::OkStatus();
  if (file_ == nullptr || bytes_ >= limits_.file_bytes) LS_RETURN_IF_ERROR(Begin());
  absl::Status status = file_->Append(lines);
  status.Update(file_->Sync());
  bytes_ += lines.size();
  if (!status.ok()) file_.reset();  // it may end in the middle of a line
  return status;
}

absl::Status HistoryFiles::Begin() {
  file_.reset();
  bytes_ = 0;
  const std::string prefix = absl::StrFormat("term-%06d-", term_);
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFiles(storage_));
  for (absl::string_view name : names) {  // those of an attempt whose outcome was unknown
    int64_t number = 0;
    if (absl::ConsumePrefix(&name, prefix) && absl::ConsumeSuffix(&name, kSuffix) && absl::SimpleAtoi(name, &number)) {
      number_ = std::max(number_, number);
    }
  }
  const std::string path = JoinPath(kHistoryFolder, absl::StrFormat("%s%06d%s", prefix, ++number_, kSuffix));
  LS_ASSIGN_OR_RETURN(file_, storage_.CreateFile(path, Access::kShared));
  LS_RETURN_IF_ERROR(storage_.SyncDirectory(kHistoryFolder));
  return RemoveOldest();
}

absl::Status HistoryFiles::RemoveOldest() {
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFiles(storage_));
  for (size_t i = 0; i + limits_.files < names.size(); ++i) {
    LS_RETURN_IF_ERROR(storage_.RemoveTree(JoinPath(kHistoryFolder, names[i])));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WorkerInterval>> ReadHistory(const Storage& storage, int& damaged) {
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFiles(storage));
  std::vector<WorkerInterval> history;
  for (const std::string& name : names) {
    const std::string path = JoinPath(kHistoryFolder, name);
    const absl::StatusOr<std::string> content = ReadWholeFile(storage, path, kLongestFile);
    if (absl::IsNotFound(content.status())) continue;  // removed meanwhile
    LS_RETURN_IF_ERROR(content.status());
    for (const absl::string_view line : absl::StrSplit(*content, '\n', absl::SkipEmpty())) {
      WorkerInterval interval;
      if (FromJson(line, path, &interval).ok()) {
        history.push_back(std::move(interval));
      } else {
        ++damaged;
      }
    }
  }
  std::stable_sort(history.begin(), history.end(),
                   [](const WorkerInterval& a, const WorkerInterval& b) { return a.at_ms() < b.at_ms(); });
  return history;
}

}  // namespace lockstep::chief
