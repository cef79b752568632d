#include "worker/device/cuda/runtime/host_stream.h"

#include <xmmintrin.h>

#include <utility>

#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/device_memory.h"
#include "worker/device/cuda/runtime/host_gpu.h"
#include "worker/device/cuda/runtime/host_rules.h"
#include "worker/device/device_lost.h"

namespace lockstep::device::cuda {
namespace {

std::atomic<int> launches_waiting{0};

}  // namespace

int HostLaunchesWaiting() { return launches_waiting; }

int CapturedWork(StreamHandle stream) { return static_cast<int>(reinterpret_cast<HostStream*>(stream)->captured()); }

std::atomic<double>& HostClock() {
  static std::atomic<double> milliseconds{0};
  return milliseconds;
}

void Mark::Finish(absl::Status how, const checker::Clock& before) {
  const std::lock_guard<std::mutex> lock(mutex);
  if (std::exchange(done, true)) return;
  status = std::move(how);
  at = HostClock();
  known = before;
  changed.notify_all();
}

absl::Status Mark::Wait() {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [this] { return done; });
  return status.ok() ? LostDevice() : status;
}

HostStream::~HostStream() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

absl::Status HostStream::Push(Queued queued) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (capturing_) {
    captured_.push_back(std::move(queued.work));
    return absl::OkStatus();
  }
  if (!HasRoom()) {
    ++launches_waiting;
    changed_.wait(lock, [this] { return HasRoom(); });
    --launches_waiting;
  }
  LS_RETURN_IF_ERROR(Failure());
  work_.push_back(std::move(queued));
  ++queued_;
  changed_.notify_all();
  return absl::OkStatus();
}

absl::Status HostStream::Synchronize() {
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t all = queued_;
  changed_.wait(lock, [&] { return done_ >= all; });
  checker::HostLearns(known_);
  return Failure();
}

absl::Status HostStream::BeginCapture() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (capturing_) return absl::InternalError("a stream is captured twice");
  capturing_ = true;
  return absl::OkStatus();
}

std::vector<Work> HostStream::EndCapture() {
  const std::lock_guard<std::mutex> lock(mutex_);
  capturing_ = false;
  return std::exchange(captured_, {});
}

bool HostStream::capturing() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return capturing_;
}

size_t HostStream::captured() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return captured_.size();
}

absl::Status HostStream::Failure() const { return failure_.ok() ? LostDevice() : failure_; }

bool HostStream::HasRoom() const { return queued_ - done_ < kHostLaunches; }

void HostStream::Loop() {
  order_.Enter();
  _mm_setcsr(0x1f80);  // as on a GPU, denormals are kept, whatever the maker of this thread does
  std::unique_lock<std::mutex> lock(mutex_);
  bool working = false;
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !work_.empty(); });
    if (work_.empty()) return;
    Queued next = std::move(work_.front());
    work_.pop_front();
    absl::Status status = Failure();
    lock.unlock();
    if (!std::exchange(working, true)) DeviceMemory::Get().BeginWork();
    order_.Learn(next.known);
    if (next.mark != nullptr) {
      next.mark->Finish(status, order_.clock());
    } else if (status.ok()) {
      status = next.work();
    }
    next = {};
    lock.lock();
    // Whoever waits for the last piece of work finds the memory closed.
    if (work_.empty()) {
      DeviceMemory::Get().EndWork();
      working = false;
    }
    if (IsDeviceLost(status)) LoseDevice(status);
    if (failure_.ok()) failure_ = std::move(status);
    ++done_;
    known_ = order_.clock();
    changed_.notify_all();
  }
}

}  // namespace lockstep::device::cuda
