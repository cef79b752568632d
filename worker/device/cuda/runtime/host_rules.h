// What CUDA asks of who calls it, and only some GPUs and some days tell: host execution ends the process where it is
// not kept, with the call's name.
//
//   * A thread makes a GPU current (SelectDevice) before it allocates, makes streams and events, or launches.
//   * A thread that captures a stream does not allocate, free, wait or ask until the capture ends, which is by the same
//     thread; and nobody waits for the stream, asks for it, or has it copy between host and device.
//
// A copy from or to memory of the host that is not pinned blocks its caller until it is done, as CUDA's may.
//
// Threading: thread-safe; a thread's GPU and capture are its own.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_RULES_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_RULES_H_

#include <cstddef>

#include "absl/status/status.h"
#include "worker/device/cuda/runtime/runtime.h"

namespace lockstep::device::cuda {

// The calling thread has selected a GPU.
void NoteDevice();
// The calling thread begins or ends the capture of `stream`.
void NoteCapture(StreamHandle stream);
void NoteEndOfCapture(StreamHandle stream);

void RequireDevice(const char* call);
void RequireNoCapture(const char* call);
// The GPU is lost with this error, if it is the first.
void LoseDevice(const absl::Status& status);
// That error; OK while there was none.
absl::Status LostDevice();
bool IsPinned(const std::byte* memory, size_t bytes);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_RULES_H_
