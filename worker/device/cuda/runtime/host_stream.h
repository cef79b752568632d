// Streams and events of host execution. A stream is a queue with a thread that executes it; an event is a mark in it.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_STREAM_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_STREAM_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "worker/device/cuda/checker/checker.h"

namespace lockstep::device::cuda {

using Work = std::function<absl::Status()>;

// The simulated time of all streams together, in milliseconds.
std::atomic<double>& HostClock();

// One recording of an event.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  absl::Status status;
  double at = 0;         // HostClock when it was reached
  checker::Clock known;  // the operations that ended before it

  void Finish(absl::Status how, const checker::Clock& before);
  // Blocks until the stream reaches the mark; returns the stream's failure, if any.
  absl::Status Wait();
};

// An item of a stream: work, or a mark.
struct Queued {
  Work work;
  std::shared_ptr<Mark> mark;
  checker::Clock known = checker::HostKnows();  // the operations that had ended for the host when it queued this
};

// Holds at most kHostLaunches items (host_gpu.h); Push blocks beyond that.
class HostStream {
 public:
  HostStream() : thread_([this] { Loop(); }) {}
  ~HostStream();

  absl::Status Push(Queued queued);
  absl::Status Synchronize();

  absl::Status BeginCapture();
  std::vector<Work> EndCapture();
  bool capturing();
  size_t captured();

 private:
  absl::Status Failure() const;
  bool HasRoom() const;
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> work_;
  std::vector<Work> captured_;
  bool capturing_ = false;
  bool ending_ = false;
  uint64_t queued_ = 0;
  uint64_t done_ = 0;
  absl::Status failure_;
  checker::StreamOrder order_;
  checker::Clock known_;  // the clock after the first done_ items
  std::thread thread_;
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_STREAM_H_
