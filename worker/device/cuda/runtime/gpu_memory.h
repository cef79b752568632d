// The GPU memory that CUDA itself takes in this process besides the buffers of its devices: the context, the modules of
// kernels, and the libraries' own memory. `resources.gpu_memory` includes it.
//
// Other processes may use the GPU, so the difference in free memory does not measure it; the driver is asked how much
// this process holds. Where the driver does not know (another PID namespace, a virtual machine), a constant is used.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_GPU_MEMORY_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_GPU_MEMORY_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace lockstep::device::cuda {

// The bytes of GPU `ordinal` that this process holds, buffers included, from NVML (gpu_memory_on_gpu.cc) or from host
// execution. Unimplemented, with the reason, where it cannot be measured.
absl::StatusOr<int64_t> MemoryOfProcess(int ordinal);

// Constants in bytes. `context`: a context where it cannot be measured. `later`: what the first steps load: modules,
// scratch of libraries, NCCL's buffers.
struct FixedMemory {
  int64_t context = 0;
  int64_t later = 0;
};
FixedMemory FixedMemoryOfCuda();

// The bytes of all buffers of device memory in this process (cuda_stream.cc).
int64_t BytesInBuffers();

// The bytes that a device on GPU `ordinal` must leave to CUDA. REQUIRES: the context exists, libraries are open.
int64_t MemoryOfCuda(int ordinal);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_RUNTIME_GPU_MEMORY_H_
