// Whether two workers can reach each other, before they share a generation: every worker answers on a small TCP port
// with its incarnation, and a newcomer asks each member's. (A pair that cannot connect would otherwise be found out
// only when a communicator fails to form.)
//
// Threading: PeerProbeServer is thread-safe and owns one thread; the free functions are thread-safe, ProbePeer blocks.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_PEER_PROBE_H_
#define LOCKSTEP_WORKER_COLLECTIVES_PEER_PROBE_H_

#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/ids.h"

namespace lockstep::worker {

class PeerProbeServer {
 public:
  // Listens on `host` (a numeric IPv4 address, or a name) at a free port. Unavailable when that is not possible.
  static absl::StatusOr<std::unique_ptr<PeerProbeServer>> Start(const std::string& host, Incarnation incarnation);
  ~PeerProbeServer();
  PeerProbeServer(const PeerProbeServer&) = delete;
  PeerProbeServer& operator=(const PeerProbeServer&) = delete;

  // "host:port", for the others.
  const std::string& address() const { return address_; }

 private:
  PeerProbeServer(int listener, int wake_read, int wake_write, std::string address, Incarnation incarnation);
  void Serve();

  const int listener_;
  const int wake_read_;
  const int wake_write_;
  const std::string address_;
  const Incarnation incarnation_;
  std::thread thread_;
};

// Connects to `address` and compares who answers. OK: it is `expected`. Unavailable: no connection. DeadlineExceeded:
// no answer within `limit`. FailedPrecondition: somebody else answered (a process that took over the port, or a later
// life). Cancelled: the descriptor `cancel` became readable or was closed at its other end; -1: nothing cancels.
absl::Status ProbePeer(const std::string& address, Incarnation expected, absl::Duration limit, int cancel = -1);

// OK when this machine can listen on `host`: a worker that cannot is reached by nobody.
absl::Status CanListen(const std::string& host);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_PEER_PROBE_H_
