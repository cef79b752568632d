// The simulated GPU of host execution: its memory size, the memory of a context, and the memory in use. Each process
// has its own GPU, unless LOCKSTEP_HOST_GPU_FILE names a file through which processes share one; the memory of a
// process is freed when it ends, in whatever way.
//
// LOCKSTEP_HOST_GPU_BYTES and LOCKSTEP_HOST_CONTEXT_BYTES set the two sizes; the defaults are 8 GiB and 0.
//
// As on a GPU a stream holds a limited number of launches (kHostLaunches: kernels, copies, event records and waits);
// one more blocks the caller until an earlier one has ended.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_GPU_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_GPU_H_

#include <cstdint>

#include "worker/device/cuda/runtime/gpu_memory.h"
#include "worker/device/cuda/runtime/runtime_on_host.h"

namespace lockstep::device::cuda {

// For tests; set before this process uses the GPU.
struct HostGpuSettings {
  int64_t total = kHostGpuBytes;
  int64_t context = 0;
  bool measurable = true;  // MemoryOfProcess succeeds
  FixedMemory fixed;
};
void SetHostGpu(const HostGpuSettings& settings);

int64_t HostGpuTotal();
// The bytes that no process holds.
int64_t HostGpuFree();
// False when less is free. The first call also takes the context.
bool TakeOfHostGpu(int64_t bytes);
void ReturnToHostGpu(int64_t bytes);

// The most launches that one stream holds.
inline constexpr uint64_t kHostLaunches = 1024;
// The number of threads of this process that are blocked in a launch.
int HostLaunchesWaiting();
// The number of launches captured so far by a stream in capture.
int CapturedWork(StreamHandle stream);

// The number of this process's copies between the GPU and pageable host memory, which block their caller.
int64_t HostPageableCopies();

// For tests: clears an error that marked the device as lost (device_lost.h), with which all calls fail, as in a new
// process. REQUIRES: older streams are not used any more.
void ForgetLostHostGpu();

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_GPU_H_
