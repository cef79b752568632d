// Finds the address at which other workers reach this one, unless a flag gives it: the source address of packets to the
// chief.
//
// Threading: thread-safe; both functions block.
#ifndef LOCKSTEP_WORKER_SESSION_PEER_HOST_H_
#define LOCKSTEP_WORKER_SESSION_PEER_HOST_H_

#include <signal.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/session/chief_client.h"

namespace lockstep::worker {

// The local address of connections to `chief` (HOST:PORT). Sends no packets to it. Blocks while the host is resolved.
// InvalidArgument: malformed. Unavailable: the host cannot be resolved (yet), or there is no route to it.
absl::StatusOr<std::string> AddressTowards(const std::string& chief);

// The same for the chief at `location`, whose address may not be known yet: retries for `limit`, then returns the last
// error of AddressTowards or ChiefClient::Address. Cancelled when one of `signals` arrives. REQUIRES: `signals` are
// blocked.
absl::StatusOr<std::string> AwaitAddressTowards(const ChiefLocation& location, absl::Duration limit,
                                                const sigset_t& signals);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_PEER_HOST_H_
