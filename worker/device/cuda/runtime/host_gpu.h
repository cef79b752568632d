// The GPU that host execution plays: how much memory it has, what a context takes of it, and who holds how much. Every
// process has one of its own, unless LOCKSTEP_HOST_GPU_FILE names a file by which processes share one; what a process
// held is free again when it has ended, however.
//
// LOCKSTEP_HOST_GPU_BYTES and LOCKSTEP_HOST_CONTEXT_BYTES set the two sizes; 8 GiB and nothing where they do not.
//
// A stream takes so many launches (of kernels, copies, marks and waits alike), as a GPU's does: the next one blocks its
// caller until an earlier one has ended.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_GPU_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_GPU_H_

#include <cstdint>

#include "worker/device/cuda/runtime/gpu_memory.h"
#include "worker/device/cuda/runtime/runtime_on_host.h"

namespace lockstep::device::cuda {

// For tests, before anything of this process is on the GPU.
struct HostGpuSettings {
  int64_t total = kHostGpuBytes;
  int64_t context = 0;
  bool measurable = true;  // MemoryOfProcess answers
  FixedMemory fixed;
};
void SetHostGpu(const HostGpuSettings& settings);

int64_t HostGpuTotal();
// Of all processes that share it.
int64_t HostGpuFree();
// False when there is not as much free. The context comes with the first call.
bool TakeOfHostGpu(int64_t bytes);
void ReturnToHostGpu(int64_t bytes);

// Launches that one stream holds before they have ended.
inline constexpr uint64_t kHostLaunches = 1024;
// How many threads of this process are blocked in a launch.
int HostLaunchesWaiting();
// How much a stream that is captured has written down.
int CapturedWork(StreamHandle stream);

// Copies of this process between the GPU and memory of the host that is not pinned, which block who makes them.
int64_t HostPageableCopies();

// After an error that marks the device as lost (device_lost.h) every call of the process fails with it. For tests: as
// in a new process from here on. REQUIRES: streams that existed are used no more.
void ForgetLostHostGpu();

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_HOST_GPU_H_
