// The handle that a communicator returns for a call, completed once by any thread; and helpers for statuses of
// collectives.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_COMPLETION_H_
#define LOCKSTEP_WORKER_COLLECTIVES_COMPLETION_H_

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "worker/collectives/communicator.h"

namespace lockstep::worker {

// Advances the calls of a communicator on the thread that waits for one of them.
class CallDriver {
 public:
  virtual ~CallDriver() = default;
  // Returns once `call` has ended, at `until` (on SteadyNow's clock), or earlier, when another thread advances the
  // calls or nobody needs to. Thread-safe.
  virtual void Drive(const Pending& call, absl::Time until) = 0;
};

class Completion final : public Pending {
 public:
  // Lets whoever waits drive, if the driver is still there. Call it before others have the handle.
  void SetDriver(std::weak_ptr<CallDriver> driver) { driver_ = std::move(driver); }
  // Ends the call; the first status stays.
  void End(const absl::Status& status);

  bool Done() const override;
  absl::Status Wait(absl::Duration limit) override;

 private:
  std::weak_ptr<CallDriver> driver_;
  mutable Mutex mutex_;
  CondVar ended_;
  std::optional<absl::Status> status_ ABSL_GUARDED_BY(mutex_);
};

// A handle that is done already.
Handle EndedHandle(const absl::Status& status);

// `cause` with the code Aborted, whatever its code was; OK becomes "asked to abort". Keeps the payloads: the blamed
// rank, the mark of a lost device. The second form replaces the message.
absl::Status AsAborted(const absl::Status& cause);
absl::Status AsAborted(const absl::Status& cause, absl::string_view message);

// Attaches `rank` to `status` as its cause: the peer whose connection was lost, or the own rank when it failed itself.
// A failure that was heard from an aborting rank blames nobody.
absl::Status Blame(absl::Status status, int rank);
std::optional<int> BlamedRank(const absl::Status& status);

// OK when `sizes` are not negative and add up to `total`, one per rank.
absl::Status CheckBlocks(absl::Span<const int64_t> sizes, int ranks, size_t total);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_COMPLETION_H_
