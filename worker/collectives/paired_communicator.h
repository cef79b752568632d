// A communicator over host memory and one over device memory as one: the two of a generation whose gradients lie on
// devices.
//
// Threading: as communicator.h says.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_PAIRED_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_COLLECTIVES_PAIRED_COMMUNICATOR_H_

#include <memory>

#include "worker/collectives/communicator.h"
#include "worker/collectives/device_communicator.h"

namespace lockstep::worker {

// Abort reaches both. `device` is destroyed first and may use `host` until then.
std::unique_ptr<Communicator> PairCommunicators(std::shared_ptr<Communicator> host,
                                                std::unique_ptr<DeviceCommunicator> device);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_PAIRED_COMMUNICATOR_H_
