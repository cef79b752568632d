// A fake communicator that defers all work: it makes a call of the inner communicator only when its handle, or a later
// one, is waited for. Code that reads a result or frees a buffer without waiting fails with it on every run.
//
// Threading: the collectives are called by one thread; Abort, status and bytes_moved are thread-safe.
#ifndef LOCKSTEP_WORKER_FAKES_DEFERRED_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_FAKES_DEFERRED_COMMUNICATOR_H_

#include <memory>

#include "worker/collectives/communicator.h"

namespace lockstep::worker {

std::unique_ptr<Communicator> MakeDeferred(std::unique_ptr<Communicator> inner);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_FAKES_DEFERRED_COMMUNICATOR_H_
