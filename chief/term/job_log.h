// The commit log of a job, as one process sees it: the newest record, and changes to it
// (docs/design/0014-commit-log.md). The chief changes it; all others only read.
//
// Invariants
//   * A change counts from the moment at which Change returned OK, and every later reader sees it.
//   * Once another chief has appended, no change of this process succeeds.
// Threading: thread-safe; every call but head() blocks on the storage.
#ifndef LOCKSTEP_CHIEF_TERM_JOB_LOG_H_
#define LOCKSTEP_CHIEF_TERM_JOB_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/commit_log/commit_log.h"
#include "common/commit_log/slots.h"
#include "common/commit_log/storage_slots.h"
#include "common/job_place/job_place.h"
#include "common/object_store/object_slots.h"
#include "common/object_store/object_store.h"
#include "common/storage/storage.h"
#include "common/sync/mutex.h"
#include "protos/commit_log.pb.h"

namespace lockstep::chief {

class JobLog {
 public:
  // The log of a directory. `storage` is not owned and outlives the log.
  explicit JobLog(Storage& storage);
  // The log of a job in a bucket. `objects` is not owned and outlives the log.
  explicit JobLog(ObjectStore& objects);
  // The log of a job wherever it is kept. `place` outlives the log.
  static std::unique_ptr<JobLog> Of(const JobPlace& place);

  // Reads the newest undamaged record; nullopt if there is no log. Changes nothing. DataLoss: there are records, but
  // the newest ones are all damaged. FailedPrecondition: the newest is of a newer program. Else codes of the storage.
  absl::StatusOr<std::optional<CommitRecord>> Read();
  // The damaged records that Read skipped, one message each. The newest changes of the job are lost with them.
  std::vector<std::string> damage() const;
  // The record that was read, with every change since; empty if there is none.
  CommitRecord head() const;

  // Appends the head with `change` applied to it; `what` describes the change in the record, for people. `change` may
  // be called several times, on different heads, and must set its fields whatever their values were. Aborted with
  // IsFenced: another chief has the job. Else codes of the storage: it is then unknown whether the change counts, and
  // whatever it names must stay. REQUIRES: Read returned OK.
  absl::Status Change(absl::string_view what, const std::function<void(CommitRecord&)>& change);

  // The term of the newest record, of whichever process; 0 if there is none, or if the log that was read no longer
  // exists. Codes of the storage.
  absl::StatusOr<int64_t> NewestTerm();
  // The owner of the newest term, as far as NewestTerm or Read saw it.
  LogOwner owner() const;

  // Removes what killed processes left between the records; does nothing in a bucket. REQUIRES: this process claimed
  // the newest term.
  absl::Status Sweep();
  // As TermRegistry::Refresh. A bucket is always current.
  absl::Status Refresh();
  // Where the log is, as a user would find it.
  std::string Describe() const;

 private:
  absl::StatusOr<std::optional<CommitRecord>> ReadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Where the job and its log are, as a user would find them.
  const std::string job_place_;
  const std::string log_place_;
  Storage* const storage_;  // of a directory; null in a bucket

  mutable Mutex mutex_;
  std::unique_ptr<StorageSlots> storage_slots_ GUARDED_BY(mutex_);  // of a directory
  std::unique_ptr<ObjectSlots> object_slots_ GUARDED_BY(mutex_);    // in a bucket
  Slots& slots_ GUARDED_BY(mutex_);                                 // one of these
  std::optional<CommitLog> log_ GUARDED_BY(mutex_);
  std::vector<std::string> damage_ GUARDED_BY(mutex_);
  std::optional<CommitRecord> newer_ GUARDED_BY(mutex_);  // a record of another process that follows the head
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_JOB_LOG_H_
