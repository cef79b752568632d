// A fake device communicator between ranks that are threads of one process, each with its own device: replaces NCCL in
// tests. Data travels through host memory: a call queues copies in a stream of its own, and the rest happens when its
// handle is waited for.
//
// Threading: Reduce and Broadcast are called by the device's owner thread, which also waits for the handles, in order;
// Abort is thread-safe.
#ifndef LOCKSTEP_WORKER_FAKES_LOOPBACK_DEVICE_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_FAKES_LOOPBACK_DEVICE_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/collectives/communicator.h"
#include "worker/device/device.h"

namespace lockstep::worker {

// Makes one rank. `words` serves calls on host memory; `buckets`, a communicator of the same ranks, carries the data of
// calls on `device`, which outlives the result. Called by the device's owner thread.
absl::StatusOr<std::unique_ptr<Communicator>> MakeLoopbackOnDevice(std::unique_ptr<Communicator> words,
                                                                   std::unique_ptr<Communicator> buckets,
                                                                   device::Device& device);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_FAKES_LOOPBACK_DEVICE_COMMUNICATOR_H_
