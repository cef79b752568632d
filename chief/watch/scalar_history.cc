#include "chief/watch/scalar_history.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/events/event_record.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kReadAtOnce = uint64_t{4} << 20;
constexpr size_t kLongestRecord = size_t{64} << 20;
constexpr size_t kMostSeries = 1000;

}  // namespace

absl::Status ScalarHistory::ReadNew(const Storage& storage) {
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage.List(layout::kEvents));
  for (const DirectoryEntry& entry : entries) {
    if (entry.is_directory || !absl::StartsWith(entry.name, "events.out.tfevents.")) continue;
    if (absl::StrContains(entry.name, ".metagraph.")) continue;
    const absl::Status status = ReadNewOf(storage, entry);
    if (!absl::IsNotFound(status)) LS_RETURN_IF_ERROR(status);  // else it was removed meanwhile
  }
  return absl::OkStatus();
}

absl::Status ScalarHistory::ReadNewOf(const Storage& storage, const DirectoryEntry& entry) {
  Progress& progress = files_[entry.name];
  if (entry.size == progress.seen) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const auto file, storage.OpenFile(JoinPath(layout::kEvents, entry.name)));
  std::string rest;
  for (uint64_t at = progress.read; at < file->size();) {
    const size_t begin = rest.size();
    const uint64_t bytes = std::min(kReadAtOnce, file->size() - at);
    rest.resize(begin + bytes);
    LS_RETURN_IF_ERROR(file->ReadAt(at, absl::MakeSpan(&rest[begin], bytes)));
    at += bytes;
    const size_t taken = TakeRecords(rest);
    rest.erase(0, taken);
    progress.read += taken;
    if (rest.size() > kLongestRecord) break;  // damage: no record is as long
  }
  progress.seen = file->size();
  return absl::OkStatus();
}

size_t ScalarHistory::TakeRecords(absl::string_view bytes) {
  size_t taken = 0;
  for (std::optional<EventData> record; (record = FirstRecord(bytes.substr(taken))).has_value();) {
    TakeRecord(record->data);
    taken += record->bytes;
  }
  return taken;
}

void ScalarHistory::TakeRecord(absl::string_view data) {
  tensorboard::Event event;
  if (!event.ParseFromArray(data.data(), static_cast<int>(data.size()))) return;
  if (event.session_log().status() == tensorboard::SessionLog::START) {
    for (auto& [tag, series] : series_) series.DropFrom(event.step());
    return;
  }
  for (const tensorboard::Summary::Value& value : event.summary().value()) {
    if (value.value_case() != tensorboard::Summary::Value::kSimpleValue) continue;
    if (series_.size() >= kMostSeries && series_.count(value.tag()) == 0) continue;
    series_[value.tag()].Add(event.step(), std::llround(event.wall_time() * 1e3), value.simple_value());
  }
}

}  // namespace lockstep::chief
