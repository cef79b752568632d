// Whether two workers can reach each other, before they share a generation: every worker's listener answers with its
// incarnation (peer_listener.h), and a newcomer asks each member's. (A pair that cannot connect would otherwise be
// found out only when a communicator fails to form.)
//
// Threading: thread-safe; ProbePeer blocks.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_PROBE_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_PROBE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/protocol/ids.h"

namespace lockstep::worker {

// Connects to `address` and compares who answers. OK: it is `expected`. Unavailable: no connection. DeadlineExceeded:
// no answer within `limit`. FailedPrecondition: somebody else answered (a process that took over the port, or a later
// life). Cancelled: the descriptor `cancel` became readable or was closed at its other end; -1: nothing cancels.
absl::Status ProbePeer(const std::string& address, Incarnation expected, absl::Duration limit, int cancel = -1);

// OK when this machine can listen on `host`: a worker that cannot is reached by nobody.
absl::Status CanListen(const std::string& host);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_PROBE_H_
