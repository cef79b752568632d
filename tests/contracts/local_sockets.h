// Forms the ranks of a group on this machine, each with a listener of its own.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_TESTS_CONTRACTS_LOCAL_SOCKETS_H_
#define LOCKSTEP_TESTS_CONTRACTS_LOCAL_SOCKETS_H_

#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/status/status_macros.h"
#include "worker/collectives/sockets/peer_listener.h"
#include "worker/collectives/sockets/socket_forming.h"

namespace lockstep::worker {

// Forms one rank. Its listener is closed once the rank is connected or has failed: established connections need none.
inline absl::StatusOr<std::unique_ptr<Communicator>> FormSockets(const SocketForming::Options& options,
                                                                 RendezvousStore& store) {
  LS_ASSIGN_OR_RETURN(const auto listener, PeerListener::Start("127.0.0.1", {.high = 0, .low = 1}));
  return SocketForming(options, *listener, store).Run();
}

// The communicator of each rank, or its error.
using Group = std::vector<absl::StatusOr<std::unique_ptr<Communicator>>>;

// Forms all ranks in parallel over one store.
inline Group Form(RendezvousStore& store, const std::vector<SocketForming::Options>& ranks) {
  Group group;
  for (size_t i = 0; i < ranks.size(); ++i) group.emplace_back(absl::UnknownError("not formed"));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] { group[i] = FormSockets(ranks[i], store); });
  }
  for (std::thread& thread : threads) thread.join();
  return group;
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_CONTRACTS_LOCAL_SOCKETS_H_
