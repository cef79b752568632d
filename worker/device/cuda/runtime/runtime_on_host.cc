#include "worker/device/cuda/runtime/runtime_on_host.h"

#include <sys/mman.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/host_gpu.h"
#include "worker/device/device.h"

namespace lockstep::device::cuda {
namespace {

using Work = std::function<absl::Status()>;

constexpr int kGarbage = 0xa5;
constexpr int64_t kMostBytes = int64_t{1} << 40;  // of one allocation

// Of all streams together: what their work has taken.
std::atomic<double>& HostClock() {
  static std::atomic<double> milliseconds{0};
  return milliseconds;
}

size_t Pages(size_t bytes) {
  constexpr size_t kPage = 4096;
  return (bytes / kPage + 1) * kPage;
}

// Device memory. Readable and writable while at least one stream works.
class DeviceMemory {
 public:
  static DeviceMemory& Get() {
    static auto* memory = new DeviceMemory;
    return *memory;
  }

  absl::StatusOr<std::byte*> Allocate(size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool taken = bytes <= static_cast<size_t>(kMostBytes) && TakeOfHostGpu(static_cast<int64_t>(bytes));
    void* const memory =
        taken ? mmap(nullptr, Pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    if (memory == MAP_FAILED) {
      if (taken) ReturnToHostGpu(static_cast<int64_t>(bytes));
      return absl::ResourceExhaustedError(absl::StrCat("the GPU has no room for ", bytes, " bytes; ", HostGpuFree(),
                                                       " of ", HostGpuTotal(), " are free"));
    }
    std::memset(memory, kGarbage, Pages(bytes));
    auto* address = static_cast<std::byte*>(memory);
    blocks_[address] = bytes;
    if (working_ == 0) Protect(address, bytes, PROT_NONE);
    return address;
  }

  void Free(std::byte* address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto block = blocks_.find(address);
    LS_CHECK(block != blocks_.end(), "device memory is freed once, by its address");
    ReturnToHostGpu(static_cast<int64_t>(block->second));
    munmap(address, Pages(block->second));
    blocks_.erase(block);
  }

  void BeginWork() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (working_++ == 0) ProtectAll(PROT_READ | PROT_WRITE);
  }
  void EndWork() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--working_ == 0) ProtectAll(PROT_NONE);
  }

 private:
  static void Protect(std::byte* address, size_t bytes, int protection) {
    LS_CHECK(mprotect(address, Pages(bytes), protection) == 0, "pages of our own change their protection");
  }
  void ProtectAll(int protection) {
    for (const auto& [address, bytes] : blocks_) Protect(address, bytes, protection);
  }

  std::mutex mutex_;
  std::map<std::byte*, size_t> blocks_;
  int working_ = 0;
};

// One recording of an event.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  absl::Status status;
  double at = 0;  // by the clock

  void Finish(absl::Status how) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (std::exchange(done, true)) return;
    status = std::move(how);
    at = HostClock();
    changed.notify_all();
  }
};

// Work of a stream, or a mark in it, which ends with the stream's failure if there is one.
struct Queued {
  Work work;
  std::shared_ptr<Mark> mark;
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
      if (next.mark != nullptr) {
        next.mark->Finish(status);
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
  return Of(stream)->Push({.work = std::move(work)});
}

int HostLaunchesWaiting() { return launches_waiting; }
int CapturedWork(StreamHandle stream) { return static_cast<int>(Of(stream)->captured()); }

absl::Status SelectDevice(int ordinal) {
  LS_RETURN_IF_ERROR(CheckOrdinal(ordinal));
  if (!TakeOfHostGpu(0)) return absl::ResourceExhaustedError("the GPU has no room for another context");
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

absl::StatusOr<std::byte*> AllocateDevice(size_t bytes) { return DeviceMemory::Get().Allocate(bytes); }
void FreeDevice(std::byte* memory) { DeviceMemory::Get().Free(memory); }

absl::StatusOr<std::byte*> AllocatePinned(size_t bytes) {
  void* memory =
      bytes > static_cast<size_t>(kMostBytes) ? nullptr : std::aligned_alloc(Buffer::kAlignment, Pages(bytes));
  if (memory == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("the host has no room for ", bytes, " pinned bytes"));
  }
  return static_cast<std::byte*>(memory);
}
void FreePinned(std::byte* memory) { std::free(memory); }

absl::StatusOr<StreamHandle> CreateStream() { return reinterpret_cast<StreamHandle>(new HostStream); }
void DestroyStream(StreamHandle stream) { delete Of(stream); }
absl::StatusOr<EventHandle> CreateEvent() { return reinterpret_cast<EventHandle>(new HostEvent); }
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
  if (!queued.ok()) mark->Finish(queued);
  return queued;
}

bool EventDone(EventHandle event) {
  const std::shared_ptr<Mark> mark = Of(event)->Newest();
  if (mark == nullptr) return true;
  const std::lock_guard<std::mutex> lock(mark->mutex);
  return mark->done;
}

absl::Status WaitForEvent(EventHandle event) {
  const std::shared_ptr<Mark> mark = Of(event)->Newest();
  return mark == nullptr ? absl::OkStatus() : WaitForMark(*mark);
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
  return EnqueueFallible(stream, [mark] { return WaitForMark(*mark); });
}

absl::Status Synchronize(StreamHandle stream) { return Of(stream)->Synchronize(); }

absl::Status CopyToDevice(StreamHandle stream, std::byte* device, const std::byte* host, size_t bytes) {
  return Copy(stream, device, host, bytes);
}
absl::Status CopyToHost(StreamHandle stream, std::byte* host, const std::byte* device, size_t bytes) {
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
  return Enqueue(stream, [=] { std::memset(device, 0, bytes); });
}

absl::Status BeginCapture(StreamHandle stream) { return Of(stream)->BeginCapture(); }

absl::StatusOr<GraphHandle> EndCapture(StreamHandle stream) {
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
