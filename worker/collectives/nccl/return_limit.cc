#include "worker/collectives/nccl/return_limit.h"

#include <unistd.h>

#include <cstdio>

#include "common/clock/clock.h"
#include "common/status/exit_code.h"

namespace lockstep::worker {

ReturnLimit::ReturnLimit(absl::Duration limit, absl::string_view doing)
    : limit_(limit), doing_(doing), thread_([this] { Watch(); }) {}

ReturnLimit::~ReturnLimit() {
  {
    MutexLock lock(&mutex_);
    returned_ = true;
    changed_.SignalAll();
  }
  thread_.join();
}

void ReturnLimit::Watch() {
  const absl::Time until = SteadyNow() + limit_;
  MutexLock lock(&mutex_);
  while (!returned_) {
    const absl::Duration left = until - SteadyNow();
    if (left <= absl::ZeroDuration()) {
      std::fprintf(stderr, "NCCL did not return from %s within %s: this process leaves to be started again (code %d)\n",
                   doing_.c_str(), absl::FormatDuration(limit_).c_str(), int{kExitPreempted});
      _exit(kExitPreempted);
    }
    changed_.WaitWithTimeout(&mutex_, left);
  }
}

}  // namespace lockstep::worker
