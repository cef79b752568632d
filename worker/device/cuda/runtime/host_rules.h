// CUDA's rules for callers, whose violation a real GPU reports only sometimes. Host execution ends the process with the
// name of the call that breaks one:
//
//   * A thread makes a GPU current (SelectDevice) before it allocates, makes streams and events, or launches.
//   * A thread that captures a stream does not allocate, free, wait or query until it ends the capture itself;
//     meanwhile no thread waits for or queries the stream, or queues copies between host and device in it.
//
// A copy from or to pageable host memory blocks its caller until it is done, as CUDA's may.
//
// Threading: thread-safe; a thread's GPU and capture are its own.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_RULES_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_RULES_H_

#include <cstddef>

#include "absl/status/status.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::device::cuda {

// Records that the calling thread has selected a GPU.
void NoteDevice();
// Records that the calling thread begins or ends the capture of `stream`.
void NoteCapture(StreamHandle stream);
void NoteEndOfCapture(StreamHandle stream);

void RequireDevice(const char* call);
void RequireNoCapture(const char* call);
// Marks the GPU as lost with this error; the first error stays.
void LoseDevice(const absl::Status& status);
// The error with which the GPU was lost; OK if it was not.
absl::Status LostDevice();
bool IsPinned(const std::byte* memory, size_t bytes);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_RULES_H_
