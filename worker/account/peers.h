// A fake communicator that plays rank 0 of a generation whose other ranks do not exist. Every call completes at once;
// the absent ranks agree with rank 0 in control words and add nothing to sums. Buckets for reduction on devices are
// written on the tape.
//
// Threading: owned by the thread that owns the tape.
#ifndef LOCKSTEP_WORKER_ACCOUNT_PEERS_H_
#define LOCKSTEP_WORKER_ACCOUNT_PEERS_H_

#include <memory>

#include "worker/account/tape.h"
#include "worker/collectives/communicator.h"

namespace lockstep::worker {

struct PeersOptions {
  int ranks = 1;
  int logical_shards = 1;
  int tensors = 0;       // of the gradient layout
  int stream = 0;        // the compute stream's number on the tape
  Tape* tape = nullptr;  // outlives the communicator
};

std::unique_ptr<Communicator> MakePeers(const PeersOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_PEERS_H_
