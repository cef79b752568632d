// Where a pass leaves its gradients, and memory that peers on the same host read.
//
// Threading: thread-safe (free functions).
#ifndef LOCKSTEP_WORKER_STEP_GRADIENT_MEMORY_H_
#define LOCKSTEP_WORKER_STEP_GRADIENT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"
#include "worker/collectives/shared/shared_memory.h"
#include "worker/device/device.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

// Zeroed memory of a device, which peers on this host may read if `shared_memory` is given, the host can access the
// device's memory and the system shares memory. ResourceExhausted when memory is exhausted.
absl::StatusOr<std::unique_ptr<device::Buffer>> AllocateForPeers(SharedMemory* shared_memory, device::Device& device,
                                                                 size_t bytes);

// Where the pass should leave gradients: in place of the sum; where peers can read them, if with `most_ranks` ranks one
// may have a single shard; or in the arena.
GradientMemory GradientMemoryFor(const device::Device& device, int logical_shards, int64_t most_ranks,
                                 ReductionMode reduction);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_GRADIENT_MEMORY_H_
