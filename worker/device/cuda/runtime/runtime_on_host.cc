#include "worker/device/cuda/runtime/runtime_on_host.h"

#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/checker/checker.h"
#include "worker/device/cuda/runtime/device_memory.h"
#include "worker/device/cuda/runtime/host_gpu.h"
#include "worker/device/cuda/runtime/host_rules.h"
#include "worker/device/device.h"

namespace lockstep::device::cuda {
namespace {

using Work = std::function<absl::Status()>;

// Of all streams together: what their work has taken.
std::atomic<double>& HostClock() {
  static std::atomic<double> milliseconds{0};
  return milliseconds;
}

// One recording of an event.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  absl::Status status;
  double at = 0;         // by the clock
  checker::Clock known;  // what has ended before it

  void Finish(absl::Status how, const checker::Clock& before) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (std::exchange(done, true)) return;
    status = std::move(how);
    at = HostClock();
    known = before;
    changed.notify_all();
  }
};

// Work of a stream, or a mark in it, which ends with the stream's failure if there is one.
struct Queued {
  Work work;
  std::shared_ptr<Mark> mark;
  checker::Clock known = checker::HostKnows();  // when it was queued
};

std::atomic<int> launches_waiting{0};

// The queue of one stream and the thread that works on it. As a GPU's it has a limit, at which whoever launches waits.
class HostStream {
 public:
  HostStream() : thread_([this] { Loop(); }) {}
  ~HostStream() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  absl::Status Push(Queued queued) {
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
    LS_RETURN_IF_ERROR(failure_);
    work_.push_back(std::move(queued));
    ++queued_;
    changed_.notify_all();
    return absl::OkStatus();
  }

  absl::Status Synchronize() {
    std::unique_lock<std::mutex> lock(mutex_);
    const uint64_t all = queued_;
    changed_.wait(lock, [&] { return done_ >= all; });
    checker::HostLearns(known_);
    return failure_;
  }

  absl::Status BeginCapture() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (capturing_) return absl::InternalError("a stream is captured twice");
    capturing_ = true;
    return absl::OkStatus();
  }
  std::vector<Work> EndCapture() {
    const std::lock_guard<std::mutex> lock(mutex_);
    capturing_ = false;
    return std::exchange(captured_, {});
  }
  size_t captured() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return captured_.size();
  }
  bool capturing() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return capturing_;
  }

 private:
  bool HasRoom() const { return queued_ - done_ < kHostLaunches; }

  void Loop() {
    order_.Enter();
    _mm_setcsr(0x1f80);  // as on a GPU, denormals are kept, whatever the maker of this thread does
    std::unique_lock<std::mutex> lock(mutex_);
    bool working = false;
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !work_.empty(); });
      if (work_.empty()) return;
      Queued next = std::move(work_.front());
      work_.pop_front();
      absl::Status status = failure_;
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
      if (failure_.ok()) failure_ = std::move(status);
      ++done_;
      known_ = order_.clock();
      changed_.notify_all();
    }
  }

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

struct HostEvent {
  std::mutex mutex;
  std::shared_ptr<Mark> newest;

  std::shared_ptr<Mark> Newest() {
    const std::lock_guard<std::mutex> lock(mutex);
    return newest;
  }
};

struct HostGraph {
  std::vector<Work> work;
};

HostStream* Of(StreamHandle stream) { return reinterpret_cast<HostStream*>(stream); }
HostEvent* Of(EventHandle event) { return reinterpret_cast<HostEvent*>(event); }
HostGraph* Of(GraphHandle graph) { return reinterpret_cast<HostGraph*>(graph); }

absl::Status WaitForMark(Mark& mark) {
  std::unique_lock<std::mutex> lock(mark.mutex);
  mark.changed.wait(lock, [&] { return mark.done; });
  return mark.status;
}

absl::Status CheckOrdinal(int ordinal) {
  if (ordinal == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no GPU ", ordinal, "; the only one is 0"));
}

absl::Status Copy(StreamHandle stream, std::byte* to, const std::byte* from, size_t bytes) {
  return Enqueue(stream, [=] {
    checker::Operation copy("a copy");
    copy.Reads(from, bytes);
    copy.Writes(to, bytes);
    if (bytes > 0) std::memcpy(to, from, bytes);
  });
}

}  // namespace

absl::Status Enqueue(StreamHandle stream, std::function<void()> work, double milliseconds) {
  return EnqueueFallible(stream, [work = std::move(work), milliseconds] {
    work();
    HostClock() += milliseconds;
    return absl::OkStatus();
  });
}

absl::Status EnqueueFallible(StreamHandle stream, std::function<absl::Status()> work) {
  RequireDevice("a launch");
  return Of(stream)->Push({.work = std::move(work)});
}

int HostLaunchesWaiting() { return launches_waiting; }
int CapturedWork(StreamHandle stream) { return static_cast<int>(Of(stream)->captured()); }

absl::Status SelectDevice(int ordinal) {
  LS_RETURN_IF_ERROR(CheckOrdinal(ordinal));
  if (!TakeOfHostGpu(0)) return absl::ResourceExhaustedError("the GPU has no room for another context");
  NoteDevice();
  return absl::OkStatus();
}

absl::StatusOr<GpuFacts> FactsOf(int ordinal) {
  LS_RETURN_IF_ERROR(CheckOrdinal(ordinal));
  // Every process has a GPU of its own, also where several share its memory: NCCL's stand-in serves them.
  return GpuFacts{.name = "host execution",
                  .uuid = absl::StrCat(absl::Hex(getpid(), absl::kZeroPad16)),
                  .capability_major = 9,
                  .capability_minor = 0,
                  .multiprocessors = 4};
}

std::string RuntimeName() { return "host execution"; }

absl::Status MemoryNow(int64_t* free_bytes, int64_t* total_bytes) {
  *total_bytes = HostGpuTotal();
  *free_bytes = HostGpuFree();
  return absl::OkStatus();
}

absl::StatusOr<std::byte*> AllocateDevice(size_t bytes) {
  RequireDevice("allocating device memory");
  RequireNoCapture("allocating device memory");
  return DeviceMemory::Get().Allocate(bytes);
}
void FreeDevice(std::byte* memory) {
  RequireNoCapture("freeing device memory");
  DeviceMemory::Get().Free(memory);
}

absl::StatusOr<std::byte*> AllocatePinned(size_t bytes) {
  RequireDevice("allocating pinned memory");
  RequireNoCapture("allocating pinned memory");
  void* memory = bytes > kMostHostBytes ? nullptr : std::aligned_alloc(Buffer::kAlignment, Pages(bytes));
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("the host has no room for ", bytes, " pinned bytes"));
  }
  const std::lock_guard<std::mutex> lock(checker::Lock());
  checker::Map().AddPinned(static_cast<std::byte*>(memory), bytes);
  return static_cast<std::byte*>(memory);
}
void FreePinned(std::byte* memory) {
  RequireNoCapture("freeing pinned memory");
  {
    const std::lock_guard<std::mutex> lock(checker::Lock());
    checker::CheckFree(*checker::Map().Pinned(reinterpret_cast<uintptr_t>(memory)));
    checker::Map().RemovePinned(memory);
  }
  std::free(memory);
}

absl::StatusOr<StreamHandle> CreateStream() {
  RequireDevice("making a stream");
  return reinterpret_cast<StreamHandle>(new HostStream);
}
void DestroyStream(StreamHandle stream) {
  RequireNoCapture("waiting for a stream");
  delete Of(stream);
}
absl::StatusOr<EventHandle> CreateEvent() {
  RequireDevice("making an event");
  return reinterpret_cast<EventHandle>(new HostEvent);
}
absl::StatusOr<EventHandle> CreateTimingEvent() { return CreateEvent(); }
void DestroyEvent(EventHandle event) { delete Of(event); }

absl::Status RecordEvent(EventHandle event, StreamHandle stream) {
  if (Of(stream)->capturing()) return absl::InternalError("an event is recorded in a stream that is captured");
  auto mark = std::make_shared<Mark>();
  {
    const std::lock_guard<std::mutex> lock(Of(event)->mutex);
    Of(event)->newest = mark;
  }
  absl::Status queued = Of(stream)->Push({.mark = mark});
  if (!queued.ok()) mark->Finish(queued, checker::Clock());
  return queued;
}

bool EventDone(EventHandle event) {
  RequireNoCapture("asking for an event");
  const std::shared_ptr<Mark> mark = Of(event)->Newest();
  if (mark == nullptr) return true;
  const std::lock_guard<std::mutex> lock(mark->mutex);
  if (mark->done) checker::HostLearns(mark->known);
  return mark->done;
}

absl::Status WaitForEvent(EventHandle event) {
  RequireNoCapture("waiting for an event");
  const std::shared_ptr<Mark> mark = Of(event)->Newest();
  if (mark == nullptr) return absl::OkStatus();
  absl::Status status = WaitForMark(*mark);
  checker::HostLearns(mark->known);
  return status;
}

absl::StatusOr<float> MillisecondsBetween(EventHandle from, EventHandle to) {
  double at[2] = {};
  for (int i = 0; i < 2; ++i) {
    const std::shared_ptr<Mark> mark = Of(i == 0 ? from : to)->Newest();
    if (mark == nullptr) return absl::InternalError("time is read between events that were never recorded");
    LS_RETURN_IF_ERROR(WaitForMark(*mark));
    const std::lock_guard<std::mutex> lock(mark->mutex);
    at[i] = mark->at;
  }
  return static_cast<float>(at[1] - at[0]);
}

absl::Status StreamWaits(StreamHandle stream, EventHandle event) {
  const std::shared_ptr<Mark> mark = Of(event)->Newest();
  if (mark == nullptr) return absl::OkStatus();
  return EnqueueFallible(stream, [mark] {
    absl::Status status = WaitForMark(*mark);
    checker::StreamOrder::OfThread().Learn(mark->known);
    return status;
  });
}

absl::Status Synchronize(StreamHandle stream) {
  RequireNoCapture("waiting for a stream");
  return Of(stream)->Synchronize();
}

absl::Status CopyToDevice(StreamHandle stream, std::byte* device, const std::byte* host, size_t bytes) {
  RequireNoCapture("copying to the device");
  return Copy(stream, device, host, bytes);
}
absl::Status CopyToHost(StreamHandle stream, std::byte* host, const std::byte* device, size_t bytes) {
  RequireNoCapture("copying to the host");
  return Copy(stream, host, device, bytes);
}
absl::Status CopyOnDevice(StreamHandle stream, std::byte* to, const std::byte* from, size_t bytes) {
  // A GPU would copy something.
  if (bytes > 0 && to < from + bytes && from < to + bytes) {
    return absl::InternalError(absl::StrCat("a copy of ", bytes, " bytes on the GPU overlaps what it reads"));
  }
  return Copy(stream, to, from, bytes);
}
absl::Status Zero(StreamHandle stream, std::byte* device, size_t bytes) {
  return Enqueue(stream, [=] {
    checker::Operation("filling with zeros").Writes(device, bytes);
    std::memset(device, 0, bytes);
  });
}

absl::Status BeginCapture(StreamHandle stream) {
  NoteCapture(stream);
  return Of(stream)->BeginCapture();
}

absl::StatusOr<GraphHandle> EndCapture(StreamHandle stream) {
  NoteEndOfCapture(stream);
  return reinterpret_cast<GraphHandle>(new HostGraph{Of(stream)->EndCapture()});
}

// REQUIRES (as CUDA): the graph outlives what is queued of it.
absl::Status Replay(GraphHandle graph, StreamHandle stream) {
  return EnqueueFallible(stream, [graph] {
    for (const Work& work : Of(graph)->work) LS_RETURN_IF_ERROR(work());
    return absl::OkStatus();
  });
}

void DestroyGraph(GraphHandle graph) { delete Of(graph); }

}  // namespace lockstep::device::cuda
