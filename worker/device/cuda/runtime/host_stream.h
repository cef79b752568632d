// Streams of host execution: a queue and the thread that works on it, and the marks that events are.
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

// Of all streams together: what their work has taken, in milliseconds.
std::atomic<double>& HostClock();

// One recording of an event.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  absl::Status status;
  double at = 0;         // by the clock
  checker::Clock known;  // what has ended before it

  void Finish(absl::Status how, const checker::Clock& before);
  // Blocks until it is done.
  absl::Status Wait();
};

// Work of a stream, or a mark in it, which ends with the stream's failure if there is one.
struct Queued {
  Work work;
  std::shared_ptr<Mark> mark;
  checker::Clock known = checker::HostKnows();  // when it was queued
};

// As a GPU's it has a limit, at which whoever launches waits (host_gpu.h).
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
  checker::Clock known_;  // what has ended, of what is in done_
  std::thread thread_;
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_STREAM_H_
