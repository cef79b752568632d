// Whether two workers can reach each other, before they share a generation: every worker answers on a small TCP port
// with its incarnation, and a newcomer asks each member's. (A pair that cannot connect would otherwise be found out
// only when a communicator fails to form.)
//
// Threading: PeerProbeServer is thread-safe and owns one thread; ProbePeer is a free function that blocks.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_PEER_PROBE_H_
#define LOCKSTEP_WORKER_COLLECTIVES_PEER_PROBE_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

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

// Connects to `address` and compares who answers. OK: it is `expected`. Unavailable: no connection or no answer
// within `limit`. FailedPrecondition: somebody else answered (a process that took over the port, or a later life).
absl::Status ProbePeer(const std::string& address, Incarnation expected, absl::Duration limit);

// One answer for each peer, in order, with the peer's name and address in it. The peers are probed side by side, so
// that those that do not answer cost `limit` together. A worker that cannot listen on `own_host` reaches nobody: they
// could not reach it.
std::vector<absl::Status> ProbePeers(const std::vector<Member>& peers, const std::string& own_host,
                                     absl::Duration limit);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_PEER_PROBE_H_
