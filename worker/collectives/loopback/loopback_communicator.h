// A communicator whose ranks live in one process: for jobs with a single worker and for tests. It has no sockets and no
// threads: the last rank to make a call does the work for all.
//
// Threading: each rank's collectives are called by one thread, which may be the same for several ranks since calls only
// enqueue; Abort, status and bytes_moved are thread-safe.
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
