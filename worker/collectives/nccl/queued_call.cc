#include "worker/collectives/nccl/queued_call.h"

#include "absl/time/clock.h"
#include "worker/collectives/completion.h"
#include "worker/device/device_lost.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kSpin = absl::Microseconds(200);
constexpr absl::Duration kNap = absl::Microseconds(50);

}  // namespace

void SharedFailure::Break(const absl::Status& cause) {
  MutexLock lock(&mutex_);
  if (!cause_.ok()) return;
  cause_ = AsAborted(cause);
  broken_.store(true, std::memory_order_release);
}

absl::Status SharedFailure::cause() const {
  if (!broken_.load(std::memory_order_acquire)) return absl::OkStatus();
  MutexLock lock(&mutex_);
  return cause_;
}

void PollBackoff::Pause() const {
  if (waited() > kSpin) absl::SleepFor(kNap);
}

absl::Status QueuedCall::Wait(absl::Duration limit) {
  const PollBackoff patience;
  while (!behind_->Ready()) {
    if (patience.waited() >= limit) return absl::DeadlineExceededError("the device is still at it");
    patience.Pause();
  }
  // An abort is known before the device gives up: a mark that it let through is never taken for a result.
  const absl::Status cause = fate_->cause();
  const absl::Status status = behind_->Wait();
  if (!cause.ok()) return device::MarkedAs(status, cause);
  return status.ok() ? status : AsAborted(status);
}

}  // namespace lockstep::worker
