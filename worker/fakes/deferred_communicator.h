// A communicator that puts everything off: a call is handed to the inner communicator only when its handle, or a
// later one, is waited for. It stands in for a device whose work runs behind the host's back: code that reads a
// result, or frees a buffer, without waiting fails with it.
//
// Threading: as communicator.h says.
#ifndef LOCKSTEP_WORKER_FAKES_DEFERRED_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_FAKES_DEFERRED_COMMUNICATOR_H_

#include <memory>

#include "worker/collectives/communicator.h"

namespace lockstep::worker {

std::unique_ptr<Communicator> MakeDeferred(std::unique_ptr<Communicator> inner);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_FAKES_DEFERRED_COMMUNICATOR_H_
