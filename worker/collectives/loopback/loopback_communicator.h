// Ranks that are threads or objects of one process, and the single worker. No sockets and no threads of its own: the
// last rank to arrive at a call does the work of all.
//
// Threading: each rank's communicator as communicator.h says; different ranks may be used from different threads or
// from one (calls end as soon as all ranks have made them).
#ifndef LOCKSTEP_WORKER_COLLECTIVES_LOOPBACK_LOOPBACK_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_COLLECTIVES_LOOPBACK_LOOPBACK_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "worker/collectives/communicator.h"

namespace lockstep::worker {

// One communicator per rank, all connected.
std::vector<std::unique_ptr<Communicator>> MakeLoopback(Generation generation, int size);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_LOOPBACK_LOOPBACK_COMMUNICATOR_H_
