// The functions of the CUDA runtime that the device needs, returning absl::Status. There are two implementations:
// runtime.cc over the CUDA runtime, and runtime_on_host.cc over host threads, so that everything above runs on machines
// without a GPU.
//
// Handles are CUDA's own pointers, owned by their creator.
//
// Threading: thread-safe. The current GPU is per thread: each thread calls SelectDevice for itself.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_RUNTIME_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace lockstep::device::cuda {

using StreamHandle = ::CUstream_st*;
using EventHandle = ::CUevent_st*;
using GraphHandle = ::CUgraphExec_st*;

// The properties of one GPU.
struct GpuFacts {
  std::string name;
  std::string uuid;  // globally unique: 32 hex digits
  int capability_major = 0;
  int capability_minor = 0;
  int multiprocessors = 0;
};

// Makes GPU `ordinal` current in the calling thread and creates its context.
absl::Status SelectDevice(int ordinal);
absl::StatusOr<GpuFacts> FactsOf(int ordinal);
// "CUDA 13.0", or the name of host execution.
std::string RuntimeName();
// Free and total bytes of the current GPU, over all processes.
absl::Status MemoryNow(int64_t* free_bytes, int64_t* total_bytes);

// Uninitialised device memory. ResourceExhausted names the size and the free bytes. `bytes` may be 0.
absl::StatusOr<std::byte*> AllocateDevice(size_t bytes);
void FreeDevice(std::byte* memory);
// Pinned host memory. ResourceExhausted names the size.
absl::StatusOr<std::byte*> AllocatePinned(size_t bytes);
void FreePinned(std::byte* memory);

absl::StatusOr<StreamHandle> CreateStream();
// Blocks until the queued work has ended.
void DestroyStream(StreamHandle stream);
absl::StatusOr<EventHandle> CreateEvent();
// An event that also records its time.
absl::StatusOr<EventHandle> CreateTimingEvent();
void DestroyEvent(EventHandle event);

absl::Status RecordEvent(EventHandle event, StreamHandle stream);
// True when the work before the event's latest recording has ended, successfully or not; true if never recorded.
bool EventDone(EventHandle event);
// Blocks until EventDone. Returns a failure of that work, if one is known.
absl::Status WaitForEvent(EventHandle event);
// The time between the latest recordings of two timing events. REQUIRES: both were waited for.
absl::StatusOr<float> MillisecondsBetween(EventHandle from, EventHandle to);
// Later work of the stream starts after the event's latest recording.
absl::Status StreamWaits(StreamHandle stream, EventHandle event);
absl::Status Synchronize(StreamHandle stream);

absl::Status CopyToDevice(StreamHandle stream, std::byte* device, const std::byte* host, size_t bytes);
absl::Status CopyToHost(StreamHandle stream, std::byte* host, const std::byte* device, size_t bytes);
absl::Status CopyOnDevice(StreamHandle stream, std::byte* to, const std::byte* from, size_t bytes);
absl::Status Zero(StreamHandle stream, std::byte* device, size_t bytes);

// Between BeginCapture and EndCapture, work queued in `stream` is recorded in a CUDA graph instead of executed. Replay
// queues the whole graph, any number of times, with the recorded addresses and arguments.
absl::Status BeginCapture(StreamHandle stream);
absl::StatusOr<GraphHandle> EndCapture(StreamHandle stream);
absl::Status Replay(GraphHandle graph, StreamHandle stream);
void DestroyGraph(GraphHandle graph);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_RUNTIME_H_
