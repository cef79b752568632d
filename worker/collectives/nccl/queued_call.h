// The handle of a call queued in a device's stream, and the shared status that ends all calls of a communicator.
//
// Threading: SharedFailure is thread-safe; a QueuedCall may be waited for by any thread.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_NCCL_QUEUED_CALL_H_
#define LOCKSTEP_WORKER_COLLECTIVES_NCCL_QUEUED_CALL_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/clock/clock.h"
#include "common/sync/mutex.h"
#include "worker/collectives/communicator.h"
#include "worker/device/device.h"

namespace lockstep::worker {

// The first failure of a communicator, shared with its handles, which may outlive it.
class SharedFailure {
 public:
  // The first cause stays.
  void Break(const absl::Status& cause);
  // OK before Break, else Aborted with the first cause.
  absl::Status cause() const;

 private:
  mutable Mutex mutex_;
  std::atomic<bool> broken_{false};
  absl::Status cause_ ABSL_GUARDED_BY(mutex_);
};

// Back-off for a thread that polls a device: spins at first, then sleeps between polls.
class PollBackoff {
 public:
  void Pause() const;
  absl::Duration waited() const { return SteadyNow() - begin_; }

 private:
  const absl::Time begin_ = SteadyNow();
};

class QueuedCall final : public Pending {
 public:
  // `behind` is an event that was recorded after the call's work.
  QueuedCall(std::unique_ptr<device::Event> behind, std::shared_ptr<const SharedFailure> fate)
      : behind_(std::move(behind)), fate_(std::move(fate)) {}

  bool Done() const override { return behind_->Ready(); }
  // A lost device is always marked (device_lost.h), even if another cause broke the communicator first.
  absl::Status Wait(absl::Duration limit) override;

 private:
  const std::unique_ptr<device::Event> behind_;
  const std::shared_ptr<const SharedFailure> fate_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_QUEUED_CALL_H_
