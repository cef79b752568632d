// The port at which other workers connect to this one; workers of the same host and user connect to a Unix socket
// instead (host_socket.h). It answers probes with the incarnation that listens, and accepts connections from ranks of
// expected generations. Docs: docs/design/0022-peer-transport.md.
//
// Invariants
//   * A stranger without the secret of an expected generation costs a comparison of 48 bytes or, with a recorded
//     prelude, the beginning of a handshake, and one descriptor for at most 2 s. At most 256 connections without a
//     finished handshake are kept; beyond that the oldest one without a prelude is closed.
//   * A stranger cannot disturb a generation: a connection that fails its handshake is dropped, and the rank that it
//     claimed to be is still awaited.
//
// Threading: thread-safe. Owns one thread. The listener outlives the ExpectedPeers that it returned.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_LISTENER_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_LISTENER_H_

#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/protocol/ids.h"
#include "common/sync/mutex.h"
#include "worker/collectives/sockets/peer_secret.h"
#include "worker/collectives/sockets/peer_stream.h"
#include "worker/collectives/sockets/tcp.h"

namespace lockstep::worker {

// The ranks of one generation that will connect to this rank.
class ExpectedPeers {
 public:
  ExpectedPeers(Generation generation, int rank, int size, std::string secret, PeerSecurity security);

  // Blocks until rank `from` has connected and proven the secret. DeadlineExceeded at `until` (on SteadyNow's clock),
  // or the cause of Abort. Call it once per rank.
  absl::StatusOr<std::unique_ptr<PeerStream>> Await(int from, absl::Time until);
  // Ends every Await. Idempotent.
  void Abort(const absl::Status& cause);

  // The key of a connection that began with the prelude `bytes`. "" when the prelude was made without the secret, is of
  // a rank that does not connect to this one, or lacks a required encryption. `loopback`: the connection does not leave
  // the host.
  std::string KeyOf(absl::string_view bytes, bool loopback);
  void Arrived(int from, std::unique_ptr<PeerStream> stream);

 private:
  const Generation generation_;
  const int rank_;
  const int size_;
  const std::string secret_;
  const PeerSecurity security_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::unique_ptr<PeerStream>> streams_ ABSL_GUARDED_BY(mutex_);  // by rank
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
};

class PeerListener {
 public:
  // Listens on `host` (a numeric IPv4 address or a name) at a free port. Unavailable when that fails.
  static absl::StatusOr<std::unique_ptr<PeerListener>> Start(const std::string& host, Incarnation incarnation);
  ~PeerListener();
  PeerListener(const PeerListener&) = delete;
  PeerListener& operator=(const PeerListener&) = delete;

  // "host:port", for other workers.
  const std::string& address() const { return address_; }

  // Accepts connections of this generation until the result is destroyed.
  std::shared_ptr<ExpectedPeers> Expect(Generation generation, int rank, int size, std::string secret,
                                        PeerSecurity security);

 private:
  // A connection whose prelude or handshake is not complete.
  struct Guest {
    Descriptor socket;
    sockaddr_in other = {};  // zero for a Unix socket
    absl::Time until;
    std::string prelude;
    std::unique_ptr<TlsHandshake> handshake;  // owns the socket when set
    std::shared_ptr<ExpectedPeers> group;
    int from = 0;
    short awaits = 1;  // poll's POLLIN or POLLOUT

    int fd() const { return handshake != nullptr ? handshake->fd() : socket.get(); }
    bool loopback() const { return other.sin_family != AF_INET || IsLoopback(other); }
  };

  PeerListener(Listening listening, Descriptor wake_read, Descriptor wake_write, std::string address,
               Incarnation incarnation);
  void Serve();
  void Accept(const Descriptor& listener);
  // False: the connection has ended or was handed over.
  bool Advance(Guest& guest);
  bool ReadPrelude(Guest& guest);
  bool Answer(const Guest& guest);

  const Descriptor listener_;
  const Descriptor wake_read_;
  Descriptor wake_write_;
  const std::string address_;
  const Descriptor host_listener_;  // for workers of this host; may not be open
  const Incarnation incarnation_;
  std::list<Guest> guests_;          // of the thread; oldest first
  bool out_of_descriptors_ = false;  // of the thread
  Mutex mutex_;
  std::vector<std::weak_ptr<ExpectedPeers>> expected_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_LISTENER_H_
