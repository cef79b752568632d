// The communicator of rank 0 among ranks that are not there: they say what rank 0 says, contribute nothing, and every
// call ends at once. Buckets that are handed to it for reduction on devices are written on the tape.
//
// Threading: as communicator.h.
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
  int stream = 0;        // that computes, by its number on the tape
  Tape* tape = nullptr;  // outlives the communicator
};

std::unique_ptr<Communicator> MakePeers(const PeersOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_PEERS_H_
