// Threads that send parts of uploads, shared by all writers of a bucket. A part that the server accepts slowly delays
// neither the next parts nor the thread that produces their bytes.
//
// Threading: thread-safe. REQUIRES: destroyed only after its users have waited for everything that they gave to Run.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_PART_SENDERS_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_PART_SENDERS_H_

#include <functional>
#include <thread>
#include <vector>

#include "common/sync/queue.h"

namespace lockstep {

class PartSenders {
 public:
  // REQUIRES: threads >= 1. The threads start with the first part.
  explicit PartSenders(int threads) : threads_(threads), queue_(1) {}
  ~PartSenders();

  // Runs `send` on one of the threads. Blocks while all threads are busy and one more part waits.
  void Run(std::function<void()> send);

 private:
  const int threads_;
  BoundedQueue<std::function<void()>> queue_;
  Mutex mutex_;
  std::vector<std::thread> started_ GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_PART_SENDERS_H_
