#include "chief/server/job_upkeep.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/found_mark.h"
#include "chief/checkpoint/recovery.h"
#include "chief/server/this_process.h"
#include "chief/term/bucket_hold.h"
#include "chief/term/job_log.h"
#include "chief/term/log_term_registry.h"
#include "chief/term/other_chief.h"
#include "chief/term/storage_term_registry.h"
#include "chief/term/term_claim.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {
namespace {

// OK when the chief of the newest term is known not to run.
absl::Status CheckNoChief(const JobPlace& place, const CommitRecord& newest, bool force) {
  if (place.bucket() == nullptr) LS_RETURN_IF_ERROR(CheckNoOtherChief(place.storage()));
  if (newest.ended() || force) return absl::OkStatus();
  // One of this machine would hold the directory's lock.
  const bool here = newest.owner().host() == ThisProcess().host();
  if (here && place.bucket() == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(place.storage().Describe(""), " is the job of the chief with pid ", newest.owner().pid(),
                   " on host ", newest.owner().host(),
                   ", which does not answer and has not said that it ended. Start the job again and repeat the "
                   "command, or give --force: if that chief runs after all, it ends with exit code 76"));
}

absl::StatusOr<std::unique_ptr<TermHold>> TakeHold(const JobPlace& place, TermRegistry& registry) {
  if (place.bucket() == nullptr) return TermHold::Take(place.storage(), registry, ThisProcess());
  return BucketHold::Take(*place.bucket(), registry, ThisProcess());
}

}  // namespace

absl::StatusOr<std::string> ChangeWithoutChief(const JobPlace& place, CheckpointChange change, int64_t step, bool force,
                                               std::vector<std::string>& messages) {
  Storage& storage = place.storage();
  const std::unique_ptr<JobLog> log = JobLog::Of(place);
  LS_ASSIGN_OR_RETURN(FoundMark found, FindMark(storage, *log));
  if (!found.mark.has_value()) {
    return absl::NotFoundError(absl::StrCat("nothing was trained in ", storage.Describe("")));
  }
  if (!found.in_log) {
    return absl::FailedPreconditionError(absl::StrCat(storage.Describe(""),
                                                      " was written by an earlier version, and its history is not in "
                                                      "the log yet; start the job once, which carries it over"));
  }
  const CommitRecord last = log->head();
  LS_RETURN_IF_ERROR(CheckNoChief(place, last, force));

  StorageTermRegistry older_terms(storage);
  LogTermRegistry registry(*log, older_terms, last.term());
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<TermHold> hold, TakeHold(place, registry));
  TakeFromHead(*log, found);
  LS_RETURN_IF_ERROR(log->Sweep());
  LS_ASSIGN_OR_RETURN(Recovered recovered, Recover(*hold, *log, found));
  messages = std::move(recovered.messages);
  ManifestStore manifests(*hold, *log, std::move(recovered.checkpoints), RetentionRule{});
  absl::StatusOr<std::string> changed = manifests.Change(change, step);
  LS_RETURN_IF_ERROR(log->Change(absl::StrCat("after ", last.change()), [&](CommitRecord& record) {
    manifests.Fill(record);
    record.set_ended(last.ended());
    record.set_exit_code(last.exit_code());
  }));
  return changed;
}

}  // namespace lockstep::chief
