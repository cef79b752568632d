// What of a GPU's memory CUDA itself takes in this process, beside the buffers of its devices: the context, the modules
// of kernels, and what libraries keep. `resources.gpu_memory` counts it.
//
// Free memory before and after says nothing where others use the GPU, so the driver is asked what this process holds.
// Where it does not say (another namespace of processes, a virtual machine), a fixed number stands in.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_GPU_MEMORY_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_GPU_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace lockstep::device::cuda {

// Bytes of GPU `ordinal` that this process holds, its buffers included. Unimplemented, with the reason, where that
// cannot be found out. By NVML (gpu_memory_on_gpu.cc), or as host execution plays it.
absl::StatusOr<int64_t> MemoryOfProcess(int ordinal);

// In bytes: a context where it cannot be measured, and what is loaded only with the first steps: modules, the
// libraries' own scratch, NCCL's buffers.
struct FixedMemory {
  int64_t context = 0;
  int64_t later = 0;
};
FixedMemory FixedMemoryOfCuda();

// Bytes in all buffers of device memory that this process has (cuda_stream.cc).
int64_t BytesInBuffers();

// What a device on GPU `ordinal` has to leave to CUDA. REQUIRES: the GPU's context exists, libraries are opened.
int64_t MemoryOfCuda(int ordinal);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_GPU_MEMORY_H_
