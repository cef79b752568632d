// The communicator between processes: one connection per pair of ranks, authenticated and, between hosts, encrypted by
// default (docs/design/0022-peer-transport.md). Ranks of one host that share memory read large exact sums from each
// other's memory, and only the places go over the connection.
//
// Invariants
//   * One thread at a time does all of a communicator's work: it sends, receives, sums and converts, and never blocks
//     on a single peer, so it notices at any time when a peer dies, aborts or asks. A thread that waits for a call
//     does the work itself, and does not sleep at first; otherwise the communicator's own thread does it. A caller
//     that makes a small call sends it itself.
//   * Before a rank has announced a call, its peers send it no more than a small number of bytes of that call, so the
//     memory for early data is bounded.
//   * A slow peer breaks nothing. An unreachable one is noticed without the chief: a peer that was silent for
//     `ask_every` is asked, and if it does not answer within `answer_limit`, an abort blames it. Ranks that make
//     different calls at the same place in the sequence abort too.
//   * Destroying a communicator ends the unfinished calls of its peers: keep it until they have ended.
//
// Threading: the collectives are called by one thread; Abort, status and bytes_moved are thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SOCKET_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SOCKET_COMMUNICATOR_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/collectives/communicator.h"
#include "worker/collectives/shared/host_memory.h"
#include "worker/collectives/sockets/peer_calls.h"
#include "worker/collectives/sockets/peer_stream.h"

namespace lockstep::worker {

// `streams`: the connection to each rank, null for the own one. `memory`: what it shares with ranks of this host; may
// be null. Unavailable when the process is out of descriptors.
absl::StatusOr<std::unique_ptr<Communicator>> MakeSocketCommunicator(SocketGroup group,
                                                                     std::vector<std::unique_ptr<PeerStream>> streams,
                                                                     std::unique_ptr<HostMemory> memory = nullptr);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SOCKET_COMMUNICATOR_H_
