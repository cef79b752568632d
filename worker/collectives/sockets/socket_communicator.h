// Ranks that are processes, over TCP: a connection between any two of them, authenticated and, beyond one host,
// encrypted (docs/design/0022-peer-transport.md).
//
// Invariants
//   * One thread does all of a communicator's work: it sends, receives, sums and converts, and it never waits for one
//     peer alone. So a peer that dies, aborts or asks is heard at any time.
//   * Nothing but a few small calls is sent to a rank before it has said that it is in the call: memory that waits for
//     it is bounded.
//   * A slow peer breaks nothing. An unreachable one is noticed without the chief: a peer that is not heard for
//     `ask_every` is asked, and one that does not answer in `answer_limit` is named in an abort. So are ranks that
//     are in different calls at the same place.
//   * Destroying a communicator ends the calls its peers are still in: keep it until they have ended theirs.
//
// Threading: as communicator.h says.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SOCKET_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SOCKET_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/collectives/communicator.h"
#include "worker/collectives/sockets/peer_stream.h"

namespace lockstep::worker {

struct SocketGroup {
  Generation generation;
  int rank = 0;
  int size = 1;
  // What the ranks are to people, by rank: "worker-1 at 10.0.0.2:4711". For notes of what is waited for; SocketForming
  // gives those a name that have none.
  std::vector<std::string> names = {};
  absl::Duration ask_every = absl::Seconds(30);
  absl::Duration answer_limit = absl::Seconds(30);
  // The largest piece in which a block travels. The same on every rank.
  int64_t piece_elements = 16 * 1024;
};

// `streams`: by rank, null for the own one. Unavailable when the process has no descriptors left.
absl::StatusOr<std::unique_ptr<Communicator>> MakeSocketCommunicator(SocketGroup group,
                                                                     std::vector<std::unique_ptr<PeerStream>> streams);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SOCKET_COMMUNICATOR_H_
