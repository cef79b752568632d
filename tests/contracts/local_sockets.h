// A rank of a group on this machine, with a listener of its own.
//
// Threading: owned by the test.
#ifndef LOCKSTEP_TESTS_CONTRACTS_LOCAL_SOCKETS_H_
#define LOCKSTEP_TESTS_CONTRACTS_LOCAL_SOCKETS_H_

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/status/status_macros.h"
#include "worker/collectives/sockets/peer_listener.h"
#include "worker/collectives/sockets/socket_forming.h"

namespace lockstep::worker {

// The listener goes when the rank is connected, or is not to be: connections that stand need none.
inline absl::StatusOr<std::unique_ptr<Communicator>> FormSockets(const SocketForming::Options& options,
                                                                 RendezvousStore& store) {
  LS_ASSIGN_OR_RETURN(const auto listener, PeerListener::Start("127.0.0.1", {.high = 0, .low = 1}));
  return SocketForming(options, *listener, store).Run();
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_CONTRACTS_LOCAL_SOCKETS_H_
