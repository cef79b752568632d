#include "chief/server/job_upkeep.h"

#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/adopt.h"
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
#include "common/storage/files.h"

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

// The job in the hands of this process.
struct Upkeep {
  TermHold& hold;
  const DirectoryMark& mark;
  ManifestStore& manifests;
  const absl::Status& lost;  // DataLoss: no checkpoint of the job verifies
};

using UpkeepTask = std::function<absl::StatusOr<std::string>(const Upkeep&)>;

// The checkpoints of a job of which none verifies. In a bucket, where everything that no record names is removed, they
// are kept as set aside.
FoundCheckpoints NothingCounts(const CommitRecord& last, const TermHold& hold) {
  FoundCheckpoints found;
  for (const std::string& path : last.retired()) found.retired.emplace(BaseName(path));
  if (!hold.in_bucket()) return found;
  for (const SetAsideCheckpoint& aside : last.set_aside()) found.set_aside[aside.prefix()] = aside.why();
  for (const LiveCheckpoint& live : last.live()) found.set_aside[live.prefix()] = "bad";
  return found;
}

// Takes the job over, does the task, and leaves what the log says of the last chief's end as it was.
absl::StatusOr<std::string> ActWithoutChief(const JobPlace& place, bool force, std::vector<std::string>& messages,
                                            const UpkeepTask& task) {
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
  absl::StatusOr<Recovered> recovered = Recover(*hold, *log, found);
  const absl::Status lost = absl::IsDataLoss(recovered.status()) ? recovered.status() : absl::OkStatus();
  if (!lost.ok()) {
    recovered = Recovered();
    recovered->checkpoints = NothingCounts(last, *hold);
    recovered->messages.emplace_back(lost.message());
  }
  LS_RETURN_IF_ERROR(recovered.status());
  messages = std::move(recovered->messages);
  ManifestStore manifests(*hold, *log, std::move(recovered->checkpoints), RetentionRule{});
  absl::StatusOr<std::string> done = task({*hold, *found.mark, manifests, lost});
  LS_RETURN_IF_ERROR(log->Change(absl::StrCat("after ", last.change()), [&](CommitRecord& record) {
    // Otherwise nothing replaced the damaged checkpoints, and the record stays as it was.
    if (!manifests.accepted().empty()) {
      manifests.Fill(record);
    }
    record.set_ended(last.ended());
    record.set_exit_code(last.exit_code());
  }));
  return done;
}

}  // namespace

absl::StatusOr<std::string> ChangeWithoutChief(const JobPlace& place, CheckpointChange change, int64_t step, bool force,
                                               std::vector<std::string>& messages) {
  return ActWithoutChief(place, force, messages, [&](const Upkeep& job) -> absl::StatusOr<std::string> {
    LS_RETURN_IF_ERROR(job.lost);
    return job.manifests.Change(change, step);
  });
}

absl::StatusOr<std::string> AdoptWithoutChief(const JobPlace& place, const CheckpointReader& checkpoint, bool force,
                                              std::vector<std::string>& messages,
                                              const CheckpointReader::OnBytes& on_bytes) {
  return ActWithoutChief(place, force, messages, [&](const Upkeep& job) {
    return Adopt(checkpoint, job.hold, job.mark, job.manifests, messages, on_bytes);
  });
}

}  // namespace lockstep::chief
