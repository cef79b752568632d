#include "chief/events/event_files.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "chief/events/event_record.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr absl::string_view kPrefix = "events.out.tfevents.";
constexpr size_t kSecondsDigits = 10;

std::string FileName(int64_t seconds, absl::string_view rest) {
  return absl::StrFormat("%s%010d.%s", kPrefix, seconds, rest);
}

// The seconds in the name of the newest file; 0 where there is none.
absl::StatusOr<int64_t> NewestSeconds(const Storage& storage) {
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, storage.List(layout::kEvents));
  int64_t newest = 0;
  for (const DirectoryEntry& entry : entries) {
    absl::string_view name = entry.name;
    int64_t seconds = 0;
    if (absl::ConsumePrefix(&name, kPrefix) && absl::SimpleAtoi(name.substr(0, kSecondsDigits), &seconds)) {
      newest = std::max(newest, seconds);
    }
  }
  return newest;
}

}  // namespace

absl::Status EventFiles::Append(absl::Time now, absl::string_view records) {
  if (NeedsFile()) return Begin(now, records);
  absl::Status status = file_->Append(records);
  status.Update(file_->Sync());
  bytes_ += records.size();
  if (!status.ok()) {  // nothing is readable behind a torn record
    file_.reset();
    maybe_told_ = true;
  }
  return status;
}

absl::Status EventFiles::Begin(absl::Time now, absl::string_view records) {
  file_.reset();
  if (seconds_ == 0) {
    LS_ASSIGN_OR_RETURN(seconds_, NewestSeconds(storage_));
  }
  seconds_ = std::max(seconds_ + 1, absl::ToUnixSeconds(now));
  std::string content = VersionRecord(now);
  if (maybe_told_) {
    if (const std::optional<int64_t> step = FirstUnmarkedStep(records)) content += StartRecord(now, *step);
  }
  absl::StrAppend(&content, records);
  const std::string path = JoinPath(layout::kEvents, FileName(seconds_, process_));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, storage_.CreateFile(path, Access::kShared));
  absl::Status status = file->Append(content);
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = storage_.SyncDirectory(layout::kEvents);
  if (!status.ok()) {
    file.reset();
    // A disk that stays full gathers no files without a record.
    if (!storage_.RemoveTree(path).ok()) maybe_told_ = true;
    return status;
  }
  file_ = std::move(file);
  bytes_ = content.size();
  maybe_told_ = false;
  return absl::OkStatus();
}

absl::Status StoreGraphEvents(TermHold& hold, absl::Time now, absl::string_view fingerprint,
                              const std::function<std::string()>& make_records) {
  const std::string path = JoinPath(layout::kEvents, FileName(0, absl::StrCat("metagraph.", fingerprint)));
  LS_ASSIGN_OR_RETURN(const bool there, hold.storage().Exists(path));
  if (there) return absl::OkStatus();
  LS_RETURN_IF_ERROR(hold.EnsureDirectory(layout::kEvents));
  const absl::Status stored = hold.StoreNew(path, absl::StrCat(VersionRecord(now), make_records()));
  return absl::IsAlreadyExists(stored) ? absl::OkStatus() : stored;
}

}  // namespace lockstep::chief
