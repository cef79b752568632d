#include "chief/term/directory_mark.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/sealed.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kMaxMarkBytes = 1 << 20;
constexpr int kFormatWithLog = 2;

// Where a checkpoint stands that was trained here, be it one that was set aside; empty: nowhere.
absl::StatusOr<std::string> PlaceOfCheckpoints(const Storage& storage) {
  for (const char* directory : {layout::kCheckpoints, layout::kSetAside}) {
    const absl::StatusOr<std::vector<DirectoryEntry>> entries = storage.List(directory);
    if (absl::IsNotFound(entries.status())) continue;
    LS_RETURN_IF_ERROR(entries.status());
    for (const DirectoryEntry& entry : *entries) {
      if (directory == layout::kCheckpoints || layout::StepOfSetAside(entry.name)) return std::string(directory);
    }
  }
  return std::string();
}

}  // namespace

absl::StatusOr<std::optional<DirectoryMark>> ReadDirectoryMark(const Storage& storage) {
  const std::string shown = storage.Describe(layout::kMark);
  const absl::StatusOr<std::string> json = ReadWholeFile(storage, layout::kMark, kMaxMarkBytes);
  if (absl::IsNotFound(json.status())) {
    LS_ASSIGN_OR_RETURN(const std::string place, PlaceOfCheckpoints(storage));
    if (place.empty()) return std::optional<DirectoryMark>();
    return absl::FailedPreconditionError(absl::StrCat(shown, " is missing, yet ", storage.Describe(place),
                                                      " holds checkpoints. Put the file back or choose another --dir"));
  }
  LS_RETURN_IF_ERROR(json.status());
  DirectoryMark mark;
  LS_RETURN_IF_ERROR(ReadSealedJson(*json, shown, kFormatWithLog, &mark));
  if (mark.format_version() == kFormatWithLog) {
    return absl::FailedPreconditionError(absl::StrCat(shown, " says that the job has a commit log, and ",
                                                      storage.Describe(layout::kLog),
                                                      " is gone. Put it back, or start again with another --dir"));
  }
  if (mark.format_version() < 1 || mark.job_id().empty() || mark.lineage().empty()) {
    return absl::DataLossError(absl::StrCat(shown, " lacks format_version, job_id or lineage"));
  }
  return std::optional<DirectoryMark>(std::move(mark));
}

absl::Status MarkAsLogged(TermHold& hold) {
  DirectoryMark mark;
  mark.set_format_version(kFormatWithLog);
  const std::string json = SealJson(&mark);
  const absl::StatusOr<std::string> there = ReadWholeFile(hold.storage(), layout::kMark, kMaxMarkBytes);
  return there.ok() && *there == json ? absl::OkStatus() : hold.Replace(layout::kMark, json);
}

absl::Status CheckSameJob(const Storage& storage, const DirectoryMark& mark, absl::string_view job_id) {
  if (mark.job_id() == job_id) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(storage.Describe(""), " belongs to the job '", mark.job_id(),
                                                    "', this one is '", job_id,
                                                    "'. Choose another --dir; nothing was changed"));
}

}  // namespace lockstep::chief
