#include "worker/device/cuda/runtime/gpu_memory.h"

#include <algorithm>

namespace lockstep::device::cuda {

int64_t MemoryOfCuda(int ordinal) {
  const FixedMemory fixed = FixedMemoryOfCuda();
  const int64_t in_buffers = BytesInBuffers();
  const absl::StatusOr<int64_t> all = MemoryOfProcess(ordinal);
  return fixed.later + (all.ok() ? std::max<int64_t>(*all - in_buffers, 0) : fixed.context);
}

}  // namespace lockstep::device::cuda
