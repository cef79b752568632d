// Connects the ranks of a generation (peer_secret.h says how they know one another), and makes their communicator.
// A rank connects to the ranks below its own, and is connected to by those above.
//
// Threading: Run is called once, by one thread; Abort by any.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SOCKET_FORMING_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SOCKET_FORMING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "worker/collectives/communicator.h"
#include "worker/collectives/rendezvous_store.h"
#include "worker/collectives/sockets/peer_listener.h"
#include "worker/collectives/sockets/socket_communicator.h"

namespace lockstep::worker {

class SocketForming {
 public:
  struct Options {
    SocketGroup group;
    // The own address, the listener's. Where it is this machine's no more, this rank is the one to blame.
    std::string host = "127.0.0.1";
    PeerSecurity security = PeerSecurity::kEncryptedBeyondHost;
    absl::Duration form_limit = absl::Seconds(20);
  };

  // `listener` and `store` outlive this; size 1 uses neither.
  SocketForming(Options options, PeerListener& listener, RendezvousStore& store);
  ~SocketForming();
  SocketForming(const SocketForming&) = delete;
  SocketForming& operator=(const SocketForming&) = delete;

  // Blocks until this rank is connected to every other, and each has shown that it is of this generation.
  // DeadlineExceeded when one does not come within form_limit, Unavailable when one cannot be connected to, Aborted
  // after Abort or when somebody else answers. The rank concerned is blamed (completion.h).
  absl::StatusOr<std::unique_ptr<Communicator>> Run();

  // Ends Run at once, and aborts the store. Idempotent, never waits for the network, does nothing to a communicator
  // that Run has returned.
  void Abort(const absl::Status& cause);

 private:
  absl::StatusOr<std::unique_ptr<Communicator>> Connect();
  absl::StatusOr<std::unique_ptr<PeerStream>> Dial(int peer, const std::string& prefix, absl::Time until);
  absl::StatusOr<std::unique_ptr<PeerStream>> Accept(ExpectedPeers& expected, int peer, const std::string& prefix,
                                                     absl::Time until);
  const std::string& NameOf(int peer) const { return options_.group.names[static_cast<size_t>(peer)]; }

  Options options_;
  PeerListener& listener_;
  RendezvousStore& store_;
  Descriptor cancel_read_;  // its other end is closed by Abort
  Mutex mutex_;
  Descriptor cancel_write_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<ExpectedPeers> expected_ ABSL_GUARDED_BY(mutex_);  // while Run is under way
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_SOCKET_FORMING_H_
