// The handle that a communicator returns for a call. It is completed once, from any thread.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_COMPLETION_H_
#define LOCKSTEP_WORKER_COLLECTIVES_COMPLETION_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "worker/collectives/communicator.h"

namespace lockstep::worker {

class Completion final : public Pending {
 public:
  // Ends the call; the first status stays.
  void End(const absl::Status& status);

  bool Done() const override;
  absl::Status Wait(absl::Duration limit) override;

 private:
  mutable Mutex mutex_;
  CondVar ended_;
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mutex_);
};

// A handle of a call that has ended already.
Handle EndedHandle(const absl::Status& status);

// The statuses of this layer: `cause` as Aborted, whatever its code was (an OK cause counts as a request to abort),
// with all that it carries: the rank that it blames, the mark of a lost device. The second says it in other words.
absl::Status AsAborted(const absl::Status& cause);
absl::Status AsAborted(const absl::Status& cause, absl::string_view message);

// `status`, naming `rank` as the cause of it: the one that a connection was lost to, or the own rank where it could not
// do its part. What others heard from a rank that aborts names nobody.
absl::Status Blame(absl::Status status, int rank);
std::optional<int> BlamedRank(const absl::Status& status);

// OK when `sizes` are not negative and add up to `total`, one per rank.
absl::Status CheckBlocks(absl::Span<const int64_t> sizes, int ranks, size_t total);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_COMPLETION_H_
