// Verifies the checkpoints of earlier chiefs one by one while the job runs. Retention counts only verified ones, so
// without this a job that is often restarted would keep ever more of them.
//
// Threading: thread-compatible; owns one thread, which blocks on the storage. The destructor waits for its current
// read.
#ifndef LOCKSTEP_CHIEF_SERVER_OLDER_CHECKS_H_
#define LOCKSTEP_CHIEF_SERVER_OLDER_CHECKS_H_

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/server/job_store.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {

class OlderChecks {
 public:
  // Begins after `rest`, so that members can first restore from the same disk. `store` is not owned.
  explicit OlderChecks(JobStore* store, absl::Duration rest = absl::Seconds(30))
      : store_(*store), thread_([this, rest] { Run(rest); }) {}
  ~OlderChecks() {
    stop_ = true;
    {
      MutexLock lock(&mutex_);
      changed_.Signal();
    }
    thread_.join();
  }
  OlderChecks(const OlderChecks&) = delete;
  OlderChecks& operator=(const OlderChecks&) = delete;

 private:
  static constexpr absl::Duration kAgain = absl::Minutes(1);  // after an error, which may pass

  void Run(absl::Duration rest) {
    NameThread("older checks");
    Rest(rest);
    while (!stop_) {
      std::vector<std::string> messages;
      const absl::StatusOr<bool> more = store_.VerifyNext(&stop_, messages);
      for (const std::string& message : messages) LS_LOG(warn, message);
      if (!more.ok() && !stop_) LS_LOG(warn, "older checkpoints: ", more.status().message());
      if (!more.ok()) {
        Rest(kAgain);
      } else if (!*more) {
        return;
      }
    }
  }
  void Rest(absl::Duration duration) {
    MutexLock lock(&mutex_);
    if (!stop_) changed_.WaitWithTimeout(&mutex_, duration);
  }

  JobStore& store_;
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  CondVar changed_;
  std::thread thread_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_OLDER_CHECKS_H_
