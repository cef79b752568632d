#include "worker/step/gradient_memory.h"

#include "absl/status/status.h"
#include "worker/step/gradient_exchange.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<device::Buffer>> AllocateForPeers(SharedMemory* shared_memory, device::Device& device,
                                                                 size_t bytes) {
  if (shared_memory != nullptr && device.host_visible()) {
    auto shared = shared_memory->Allocate(bytes);
    if (shared.ok() || absl::IsResourceExhausted(shared.status())) return shared;
  }
  // Where the system does not share memory, peers get copies.
  return device.Allocate(bytes);
}

GradientMemory GradientMemoryFor(const device::Device& device, int logical_shards, int64_t most_ranks,
                                 ReductionMode reduction) {
  if (GradientExchange::TakesAsItIs(logical_shards, reduction)) return GradientMemory::kUntilNextPass;
  const bool single_shards = most_ranks > 1 && logical_shards < 2 * most_ranks;
  const bool sends_values = reduction == ReductionMode::kExact && device.host_visible() && single_shards;
  return sends_values ? GradientMemory::kApart : GradientMemory::kUntilRead;
}

}  // namespace lockstep::worker
