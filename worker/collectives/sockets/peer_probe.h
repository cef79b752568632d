// Tests whether two workers can reach each other before they share a generation: every worker's listener answers with
// its incarnation (peer_listener.h), and a newcomer probes each member. Without this test a broken pair would be
// noticed only when a communicator fails to form.
//
// Threading: thread-safe; ProbePeer blocks.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_PROBE_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_PROBE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/protocol/ids.h"

namespace lockstep::worker {

// Connects to `address` and compares the incarnation that answers with `expected`. Unavailable: no connection.
// DeadlineExceeded: no answer within `limit`. FailedPrecondition: another incarnation or program answered. Cancelled:
// the descriptor `cancel` became readable or its other end was closed; -1: nothing cancels. Blocks.
absl::Status ProbePeer(const std::string& address, Incarnation expected, absl::Duration limit, int cancel = -1);

// OK when this machine can listen on `host`: otherwise no peer can reach this worker.
absl::Status CanListen(const std::string& host);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_PROBE_H_
