#include "worker/collectives/rendezvous_store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "worker/collectives/completion.h"

namespace lockstep::worker {

absl::Status InProcessStore::Set(absl::string_view key, absl::string_view bytes) {
  MutexLock lock(&mutex_);
  if (!aborted_.ok()) return aborted_;
  const auto [it, inserted] = entries_.emplace(std::string(key), std::string(bytes));
  if (!inserted && it->second != bytes) {
    return absl::AlreadyExistsError(absl::StrCat("rendezvous key '", key, "' was set before, to other bytes"));
  }
  changed_.SignalAll();
  return absl::OkStatus();
}

absl::StatusOr<std::string> InProcessStore::Get(absl::string_view key, absl::Duration limit) {
  const absl::Time until = SteadyNow() + std::min(limit, absl::Hours(24 * 365));
  MutexLock lock(&mutex_);
  for (;;) {
    if (!aborted_.ok()) return aborted_;
    if (const auto it = entries_.find(key); it != entries_.end()) return it->second;
    const absl::Duration left = until - SteadyNow();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat("nobody set rendezvous key '", key, "' within ", absl::FormatDuration(limit)));
    }
    changed_.WaitWithTimeout(&mutex_, left);
  }
}

void InProcessStore::Abort(const absl::Status& cause) {
  MutexLock lock(&mutex_);
  if (aborted_.ok()) aborted_ = AsAborted(cause);
  changed_.SignalAll();
}

}  // namespace lockstep::worker
