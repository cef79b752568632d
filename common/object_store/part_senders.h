// Threads that send parts of uploads, for all writers of a bucket together: a server that takes its time over one part
// holds up neither the next parts nor who makes their bytes.
//
// Threading: thread-safe. Destroyed after everything that was given to it was waited for.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_PART_SENDERS_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_PART_SENDERS_H_

#include <functional>
#include <thread>
#include <vector>

#include "common/sync/queue.h"

namespace lockstep {

class PartSenders {
 public:
  // REQUIRES: threads >= 1. They start with the first part.
  explicit PartSenders(int threads) : threads_(threads), queue_(1) {}
  ~PartSenders();

  // Runs `send` on one of the threads. Blocks while all are at work and one more part waits.
  void Run(std::function<void()> send);

 private:
  const int threads_;
  BoundedQueue<std::function<void()>> queue_;
  Mutex mutex_;
  std::vector<std::thread> started_ GUARDED_BY(mutex_);
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_PART_SENDERS_H_
