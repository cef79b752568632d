// Connects the ranks of a generation, authenticated as in peer_secret.h, and makes their communicator. A rank connects
// to the ranks below it and accepts connections from those above.
//
// Threading: Run is called once, by one thread; Abort is thread-safe.
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
    // The address of the own listener. If it is no longer an address of this machine, this rank blames itself.
    std::string host = "127.0.0.1";
    PeerSecurity security = PeerSecurity::kEncryptedBeyondHost;
    absl::Duration form_limit = absl::Seconds(20);
    // Whether ranks of the same host are connected by Unix sockets rather than TCP.
    bool host_sockets = true;
    // What ranks may read that are connected by a Unix socket which does not encrypt; null: nothing.
    std::shared_ptr<SharedMemory> memory = nullptr;
  };

  // `listener` and `store` outlive this object; a group of size 1 uses neither.
  SocketForming(Options options, PeerListener& listener, RendezvousStore& store);
  ~SocketForming();
  SocketForming(const SocketForming&) = delete;
  SocketForming& operator=(const SocketForming&) = delete;

  // Blocks until this rank is connected to all others and each is authenticated. DeadlineExceeded when a rank does not
  // connect within form_limit, Unavailable when a rank cannot be connected to, Aborted after Abort or when another
  // process answers. The rank concerned is blamed (completion.h).
  absl::StatusOr<std::unique_ptr<Communicator>> Run();

  // Ends Run at once and aborts the store. Idempotent, never waits for the network. Does not touch a communicator that
  // Run has returned.
  void Abort(const absl::Status& cause);

 private:
  absl::StatusOr<std::unique_ptr<Communicator>> Connect();
  // A socket that is connected to the listener of `card`, and whether the connection stays on this host.
  struct Dialled {
    Descriptor socket;
    bool loopback = false;
  };
  absl::StatusOr<Dialled> ConnectTo(const PeerCard& card, absl::Time until, const std::string& what);
  // Null when no rank of this host can share memory with this one.
  absl::StatusOr<std::unique_ptr<HostMemory>> ShareMemory(const std::vector<std::unique_ptr<PeerStream>>& streams,
                                                          absl::Time until);
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
