// The address at which the other workers reach this one, unless a flag gives it: the source address of its packets to
// the chief.
//
// Threading: thread-safe; both block.
#ifndef LOCKSTEP_WORKER_SESSION_PEER_HOST_H_
#define LOCKSTEP_WORKER_SESSION_PEER_HOST_H_

#include <signal.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/session/chief_client.h"

namespace lockstep::worker {

// The address of this machine that connections to `chief`, HOST:PORT, begin at. Sends nothing. Blocks while the host is
// resolved. InvalidArgument: no such place. Unavailable: the host is not known (yet), or no route leads there.
absl::StatusOr<std::string> AddressTowards(const std::string& chief);

// That of the chief at `location`, whose address may not be known yet: tries for `limit`, then returns the last
// failure, of AddressTowards or ChiefClient::Address. Cancelled when one of `signals` comes meanwhile; they are
// blocked.
absl::StatusOr<std::string> AwaitAddressTowards(const ChiefLocation& location, absl::Duration limit,
                                                const sigset_t& signals);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_PEER_HOST_H_
