// Ranks that are threads of one process, with gradients and state in the memory of a device each: what stands in for
// NCCL in tests. What it moves travels over host memory behind the back of whoever calls: a call only queues copies in
// a stream of its own, and goes on when its handle is waited for.
//
// Threading: as device_communicator.h, but handles are waited for by the device's owner thread, in order.
#ifndef LOCKSTEP_WORKER_FAKES_LOOPBACK_DEVICE_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_FAKES_LOOPBACK_DEVICE_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/collectives/communicator.h"
#include "worker/device/device.h"

namespace lockstep::worker {

// One rank: `words` carries what lies in host memory, `buckets`, of the same ranks, what lies on `device`, which
// outlives the communicator. Called by the device's owner thread.
absl::StatusOr<std::unique_ptr<Communicator>> MakeLoopbackOnDevice(std::unique_ptr<Communicator> words,
                                                                   std::unique_ptr<Communicator> buckets,
                                                                   device::Device& device);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_FAKES_LOOPBACK_DEVICE_COMMUNICATOR_H_
