#include "worker/device/cuda/runtime/runtime_on_host.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "common/tensor/poison.h"
#include "worker/device/cuda/checker/checker.h"
#include "worker/device/cuda/runtime/device_memory.h"
#include "worker/device/cuda/runtime/host_gpu.h"
#include "worker/device/cuda/runtime/host_rules.h"
#include "worker/device/cuda/runtime/host_stream.h"
#include "worker/device/device.h"

namespace lockstep::device::cuda {
namespace {

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
    // What stands for nothing is nothing.
    if (IsPoison({to, bytes})) copy.Empties(to, bytes);
  });
}

std::atomic<int64_t> pageable_copies{0};

// Between host and device.
absl::Status CopyOfHost(StreamHandle stream, std::byte* to, const std::byte* from, size_t bytes,
                        const std::byte* host) {
  LS_RETURN_IF_ERROR(Copy(stream, to, from, bytes));
  if (IsPinned(host, bytes)) return absl::OkStatus();
  ++pageable_copies;
  return Of(stream)->Synchronize();
}

}  // namespace

int64_t HostPageableCopies() { return pageable_copies; }

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

absl::Status SelectDevice(int ordinal) {
  LS_RETURN_IF_ERROR(CheckOrdinal(ordinal));
  LS_RETURN_IF_ERROR(LostDevice());
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
  return LostDevice();
}

absl::StatusOr<std::byte*> AllocateDevice(size_t bytes) {
  RequireDevice("allocating device memory");
  RequireNoCapture("allocating device memory");
  LS_RETURN_IF_ERROR(LostDevice());
  return DeviceMemory::Get().Allocate(bytes);
}
void FreeDevice(std::byte* memory) {
  RequireNoCapture("freeing device memory");
  DeviceMemory::Get().Free(memory);
}

absl::StatusOr<std::byte*> AllocatePinned(size_t bytes) {
  RequireDevice("allocating pinned memory");
  RequireNoCapture("allocating pinned memory");
  LS_RETURN_IF_ERROR(LostDevice());
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
  LS_RETURN_IF_ERROR(LostDevice());
  return reinterpret_cast<StreamHandle>(new HostStream);
}
void DestroyStream(StreamHandle stream) {
  RequireNoCapture("waiting for a stream");
  delete Of(stream);
}
absl::StatusOr<EventHandle> CreateEvent() {
  RequireDevice("making an event");
  LS_RETURN_IF_ERROR(LostDevice());
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
  absl::Status status = mark->Wait();
  checker::HostLearns(mark->known);
  return status;
}

absl::StatusOr<float> MillisecondsBetween(EventHandle from, EventHandle to) {
  double at[2] = {};
  for (int i = 0; i < 2; ++i) {
    const std::shared_ptr<Mark> mark = Of(i == 0 ? from : to)->Newest();
    if (mark == nullptr) return absl::InternalError("time is read between events that were never recorded");
    LS_RETURN_IF_ERROR(mark->Wait());
    const std::lock_guard<std::mutex> lock(mark->mutex);
    at[i] = mark->at;
  }
  return static_cast<float>(at[1] - at[0]);
}

absl::Status StreamWaits(StreamHandle stream, EventHandle event) {
  if (Of(stream)->capturing()) return absl::InternalError("a stream that is captured waits for an event");
  const std::shared_ptr<Mark> mark = Of(event)->Newest();
  if (mark == nullptr) return absl::OkStatus();
  return EnqueueFallible(stream, [mark] {
    absl::Status status = mark->Wait();
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
  return CopyOfHost(stream, device, host, bytes, host);
}
absl::Status CopyToHost(StreamHandle stream, std::byte* host, const std::byte* device, size_t bytes) {
  RequireNoCapture("copying to the host");
  return CopyOfHost(stream, host, device, bytes, host);
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
