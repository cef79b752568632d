// A named thread that runs functions one after another, in the order in which they were posted.
//
// Threading: thread-safe. The destructor runs what was posted before, then joins.
#ifndef LOCKSTEP_COMMON_LIVENESS_SERIAL_EXECUTOR_H_
#define LOCKSTEP_COMMON_LIVENESS_SERIAL_EXECUTOR_H_

#include <cstddef>
#include <functional>
#include <thread>
#include <utility>

#include "common/liveness/activity.h"
#include "common/sync/queue.h"

namespace lockstep {

class SerialExecutor {
 public:
  using Work = std::function<void()>;

  SerialExecutor(const char* name, size_t limit)
      : queue_(limit), thread_([this, name] {
          NameThread(name);
          while (auto work = queue_.Pop()) (*work)();
        }) {}
  ~SerialExecutor() { Finish(); }
  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  // Queues `work`. Blocks while `limit` functions wait. False after Finish. REQUIRES: not called by the executor's own
  // thread when full.
  bool Post(Work work) { return queue_.Push(std::move(work)); }

  // Rejects new work, runs what is queued, and joins. Idempotent; called by one thread.
  void Finish() {
    queue_.Close();
    if (thread_.joinable()) thread_.join();
  }

 private:
  BoundedQueue<Work> queue_;
  std::thread thread_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LIVENESS_SERIAL_EXECUTOR_H_
