#include "chief/term/directory_mark.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kMaxMarkBytes = 1 << 20;

// True when some checkpoint stands in the directory.
absl::StatusOr<bool> HasCheckpoints(const Storage& storage) {
  const absl::StatusOr<std::vector<DirectoryEntry>> entries = storage.List(layout::kCheckpoints);
  if (absl::IsNotFound(entries.status())) return false;
  LS_RETURN_IF_ERROR(entries.status());
  return !entries->empty();
}

}  // namespace

absl::StatusOr<std::optional<DirectoryMark>> ReadDirectoryMark(const Storage& storage) {
  const std::string shown = storage.Describe(layout::kMark);
  const absl::StatusOr<std::string> json = ReadWholeFile(storage, layout::kMark, kMaxMarkBytes);
  if (absl::IsNotFound(json.status())) {
    LS_ASSIGN_OR_RETURN(const bool any, HasCheckpoints(storage));
    if (!any) return std::optional<DirectoryMark>();
    return absl::FailedPreconditionError(absl::StrCat(shown, " is missing, yet ",
                                                      storage.Describe(layout::kCheckpoints),
                                                      " holds checkpoints. Put the file back or choose another --dir"));
  }
  LS_RETURN_IF_ERROR(json.status());
  DirectoryMark mark;
  LS_RETURN_IF_ERROR(FromJson(*json, shown, &mark));
  if (mark.format_version() > kDirectoryFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(shown, " has format version ", mark.format_version(),
                                                      "; this program reads up to ", kDirectoryFormatVersion));
  }
  if (mark.format_version() < 1 || mark.job_id().empty() || mark.lineage().empty()) {
    return absl::DataLossError(absl::StrCat(shown, " lacks format_version, job_id or lineage"));
  }
  return std::optional<DirectoryMark>(std::move(mark));
}

absl::Status WriteDirectoryMark(TermHold& hold, DirectoryMark mark) {
  mark.set_format_version(kDirectoryFormatVersion);
  return hold.Replace(layout::kMark, ToJson(mark));
}

absl::Status CheckSameJob(const Storage& storage, const DirectoryMark& mark, absl::string_view job_id) {
  if (mark.job_id() == job_id) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(storage.Describe(""), " belongs to the job '", mark.job_id(),
                                                    "', this one is '", job_id,
                                                    "'. Choose another --dir; nothing was changed"));
}

}  // namespace lockstep::chief
