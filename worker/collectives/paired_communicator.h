// Combines a generation's host communicator and its device communicator into one Communicator.
//
// Threading: the collectives are called by one thread; Abort, status and bytes_moved are thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_PAIRED_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_COLLECTIVES_PAIRED_COMMUNICATOR_H_

#include <memory>

#include "worker/collectives/communicator.h"
#include "worker/collectives/device_communicator.h"

namespace lockstep::worker {

// Abort aborts both. `device` is destroyed first and may use `host` until then.
std::unique_ptr<Communicator> PairCommunicators(std::shared_ptr<Communicator> host,
                                                std::unique_ptr<DeviceCommunicator> device);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_PAIRED_COMMUNICATOR_H_
