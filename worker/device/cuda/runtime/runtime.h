// What the device needs of CUDA's runtime, as functions that return absl::Status. Two files implement it: runtime.cc by
// the CUDA runtime, runtime_on_host.cc by threads of the host, so that everything above runs on machines without a GPU.
//
// Handles are CUDA's own pointers and are owned by whoever created them.
//
// Threading: thread-safe, but for the current GPU, which each thread selects for itself with SelectDevice.
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

// One GPU as the runtime sees it.
struct GpuFacts {
  std::string name;
  std::string uuid;  // of no other GPU anywhere: 32 hex digits
  int capability_major = 0;
  int capability_minor = 0;
  int multiprocessors = 0;
};

// Makes GPU `ordinal` the calling thread's, with its context.
absl::Status SelectDevice(int ordinal);
absl::StatusOr<GpuFacts> FactsOf(int ordinal);
// "CUDA 13.0", or what stands in for it.
std::string RuntimeName();
// Free and total bytes of the current GPU, over all processes.
absl::Status MemoryNow(int64_t* free_bytes, int64_t* total_bytes);

// Not filled. ResourceExhausted names the size and what is free. `bytes` may be 0.
absl::StatusOr<std::byte*> AllocateDevice(size_t bytes);
void FreeDevice(std::byte* memory);
// Host memory that the GPU reads and writes without a copy in between. ResourceExhausted names the size.
absl::StatusOr<std::byte*> AllocatePinned(size_t bytes);
void FreePinned(std::byte* memory);

absl::StatusOr<StreamHandle> CreateStream();
// Waits for what is queued.
void DestroyStream(StreamHandle stream);
absl::StatusOr<EventHandle> CreateEvent();
// An event that also knows when it came.
absl::StatusOr<EventHandle> CreateTimingEvent();
void DestroyEvent(EventHandle event);

absl::Status RecordEvent(EventHandle event, StreamHandle stream);
// True when what was queued before the newest mark has ended, well or not; true if never recorded.
bool EventDone(EventHandle event);
// Blocks until EventDone. Returns a failure of the work before it, as far as it is known.
absl::Status WaitForEvent(EventHandle event);
// Between the newest marks of two timing events. REQUIRES: both were waited for.
absl::StatusOr<float> MillisecondsBetween(EventHandle from, EventHandle to);
// Later work of the stream starts after the event's newest mark.
absl::Status StreamWaits(StreamHandle stream, EventHandle event);
absl::Status Synchronize(StreamHandle stream);

absl::Status CopyToDevice(StreamHandle stream, std::byte* device, const std::byte* host, size_t bytes);
absl::Status CopyToHost(StreamHandle stream, std::byte* host, const std::byte* device, size_t bytes);
absl::Status CopyOnDevice(StreamHandle stream, std::byte* to, const std::byte* from, size_t bytes);
absl::Status Zero(StreamHandle stream, std::byte* device, size_t bytes);

// Between the two, what is queued in `stream` is written down instead of done. The result does it all at once, as often
// as it is replayed, with the addresses and numbers that were written down.
absl::Status BeginCapture(StreamHandle stream);
absl::StatusOr<GraphHandle> EndCapture(StreamHandle stream);
absl::Status Replay(GraphHandle graph, StreamHandle stream);
void DestroyGraph(GraphHandle graph);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_RUNTIME_H_
