#include "chief/stats/line_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr absl::string_view kSuffix = ".jsonl";
constexpr uint64_t kReadAtOnce = uint64_t{4} << 20;
constexpr size_t kLongestLine = size_t{1} << 20;  // a longer one is damage

// Sorted by name, which is their order.
absl::StatusOr<std::vector<DirectoryEntry>> ListFiles(const Storage& storage, absl::string_view folder) {
  LS_ASSIGN_OR_RETURN(std::vector<DirectoryEntry> entries, storage.List(folder));
  std::erase_if(entries,
                [](const DirectoryEntry& entry) { return entry.is_directory || !absl::EndsWith(entry.name, kSuffix); });
  return entries;
}

}  // namespace

std::string JsonLine(const google::protobuf::Message& message) {
  return absl::StrCat(nlohmann::ordered_json::parse(ToSparseJson(message)).dump(), "\n");
}

absl::Status LineFiles::Append(absl::string_view lines) {
  if (lines.empty()) return absl::OkStatus();
  if (file_ == nullptr || bytes_ >= limits_.file_bytes) LS_RETURN_IF_ERROR(Begin());
  absl::Status status = file_->Append(lines);
  status.Update(file_->Sync());
  bytes_ += lines.size();
  if (!status.ok()) file_.reset();  // it may end in the middle of a line
  return status;
}

absl::Status LineFiles::Begin() {
  file_.reset();
  bytes_ = 0;
  const std::string prefix = absl::StrFormat("term-%06d-", term_);
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> files, ListFiles(storage_, folder_));
  for (const DirectoryEntry& file : files) {  // those of an attempt whose outcome was unknown
    absl::string_view name = file.name;
    int64_t number = 0;
    if (absl::ConsumePrefix(&name, prefix) && absl::ConsumeSuffix(&name, kSuffix) && absl::SimpleAtoi(name, &number)) {
      number_ = std::max(number_, number);
    }
  }
  const std::string path = JoinPath(folder_, absl::StrFormat("%s%06d%s", prefix, ++number_, kSuffix));
  LS_ASSIGN_OR_RETURN(file_, storage_.CreateFile(path, Access::kShared));
  LS_RETURN_IF_ERROR(storage_.SyncDirectory(folder_));
  return RemoveOldest();
}

absl::Status LineFiles::RemoveOldest() {
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> files, ListFiles(storage_, folder_));
  for (size_t i = 0; i + limits_.files < files.size(); ++i) {
    LS_RETURN_IF_ERROR(storage_.RemoveTree(JoinPath(folder_, files[i].name)));
  }
  return absl::OkStatus();
}

absl::Status LineReader::ReadNew(const Storage& storage, const Take& take) {
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> files, ListFiles(storage, folder_));
  for (const DirectoryEntry& file : files) {
    const absl::Status status = ReadNewOf(storage, file, take);
    if (!absl::IsNotFound(status)) LS_RETURN_IF_ERROR(status);  // else it was removed meanwhile
  }
  return absl::OkStatus();
}

absl::Status LineReader::ReadNewOf(const Storage& storage, const DirectoryEntry& entry, const Take& take) {
  uint64_t& read = read_[entry.name];
  if (entry.size <= read) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const auto file, storage.OpenFile(JoinPath(folder_, entry.name)));
  std::string rest;  // behind the last whole line
  for (uint64_t at = read; at < file->size();) {
    const size_t begin = rest.size();
    const uint64_t bytes = std::min(kReadAtOnce, file->size() - at);
    rest.resize(begin + bytes);
    LS_RETURN_IF_ERROR(file->ReadAt(at, absl::MakeSpan(&rest[begin], bytes)));
    at += bytes;
    size_t taken = 0;
    for (size_t end; (end = rest.find('\n', std::max(begin, taken))) != std::string::npos; taken = end + 1) {
      const absl::string_view line(&rest[taken], end - taken);
      if (!line.empty() && !take(line)) ++damaged_;
    }
    rest.erase(0, taken);
    read = at - rest.size();
    if (rest.size() <= kLongestLine) continue;
    ++damaged_;
    read = at;
    rest.clear();
  }
  if (rest.empty()) {
    unfinished_.erase(entry.name);
  } else {
    unfinished_.insert(entry.name);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
