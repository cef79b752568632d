// The one port of a worker at which other workers find it: it tells whoever asks which incarnation listens (a probe),
// and takes the connections of ranks of the generations that are expected. Docs: docs/design/0022-peer-transport.md.
//
// Invariants
//   * Nobody without the secret of an expected generation gets more than a comparison of 48 bytes, or, with a prelude
//     that he recorded, the beginning of a handshake; he holds a descriptor for 2 s at most. At most 256 who have not
//     finished their handshake are held; of those who have not shown a prelude the oldest goes.
//   * What a stranger sends changes nothing for a generation: a connection that fails its handshake is dropped, and the
//     rank it claimed to be is still waited for.
//
// Threading: thread-safe. Owns one thread. The listener outlives what it gave out.
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

// The ranks of one generation that connect to this one.
class ExpectedPeers {
 public:
  ExpectedPeers(Generation generation, int rank, int size, std::string secret, PeerSecurity security);

  // Blocks until rank `from` has connected and shown the secret. DeadlineExceeded at `until` (of SteadyNow), or the
  // cause of Abort. Once per rank.
  absl::StatusOr<std::unique_ptr<PeerStream>> Await(int from, absl::Time until);
  // Ends every Await. Idempotent.
  void Abort(const absl::Status& cause);

  // The key of a connection that began with `bytes`, a prelude; "" where it shows no secret, is of a rank that does not
  // connect to this one, or is not encrypted where it has to be.
  std::string KeyOf(absl::string_view bytes, const sockaddr_in& other);
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
  // Listens on `host` (a numeric IPv4 address, or a name) at a free port. Unavailable when that is not possible.
  static absl::StatusOr<std::unique_ptr<PeerListener>> Start(const std::string& host, Incarnation incarnation);
  ~PeerListener();
  PeerListener(const PeerListener&) = delete;
  PeerListener& operator=(const PeerListener&) = delete;

  // "host:port", for the others.
  const std::string& address() const { return address_; }

  // From here on, until the result is gone, its connections are taken.
  std::shared_ptr<ExpectedPeers> Expect(Generation generation, int rank, int size, std::string secret,
                                        PeerSecurity security);

 private:
  // A connection that has not shown what it is, or is in its handshake.
  struct Guest {
    Descriptor socket;
    sockaddr_in other;
    absl::Time until;
    std::string prelude;
    std::unique_ptr<TlsHandshake> handshake;  // takes the socket over
    std::shared_ptr<ExpectedPeers> group;
    int from = 0;
    short awaits = 1;  // poll's POLLIN or POLLOUT

    int fd() const { return handshake != nullptr ? handshake->fd() : socket.get(); }
  };

  PeerListener(Listening listening, Descriptor wake_read, Descriptor wake_write, std::string address,
               Incarnation incarnation);
  void Serve();
  void Accept();
  // False: the connection is over, or is somebody else's now.
  bool Advance(Guest& guest);
  bool ReadPrelude(Guest& guest);
  bool Answer(const Guest& guest);

  const Descriptor listener_;
  const Descriptor wake_read_;
  Descriptor wake_write_;
  const std::string address_;
  const Incarnation incarnation_;
  std::list<Guest> guests_;          // of the thread; oldest first
  bool out_of_descriptors_ = false;  // of the thread
  Mutex mutex_;
  std::vector<std::weak_ptr<ExpectedPeers>> expected_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_LISTENER_H_
