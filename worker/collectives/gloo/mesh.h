// The sockets of one generation: every rank connected to every other through Gloo pairs, and waits on them that can
// be aborted. The one place that calls Gloo; its exceptions end here.
//
// Invariants
//   * Break ends every wait, and every later one, at once.
//   * After Break no Send or Receive begins.
//
// Threading: thread-compatible, except Break, status and bytes_moved, which are thread-safe, and Close.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_GLOO_MESH_H_
#define LOCKSTEP_WORKER_COLLECTIVES_GLOO_MESH_H_

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"
#include "worker/collectives/rendezvous_store.h"

namespace lockstep::worker {

class Mesh;

// Memory that takes part in transfers. Destroying it ends Gloo's access to the memory.
class Region {
 public:
  Region(Mesh& mesh, void* memory, size_t bytes);

  // Enqueue a transfer of [offset, offset + bytes). Transfers between two ranks under one slot match in order.
  absl::Status Send(int peer, uint64_t slot, size_t offset, size_t bytes);
  absl::Status Receive(int peer, uint64_t slot, size_t offset, size_t bytes);
  // Wait for the next of this region's sends, or receives, to complete. Where a limit passes the mesh breaks: Gloo then
  // closes every connection.
  absl::Status AwaitSend(absl::Duration limit = absl::InfiniteDuration());
  absl::Status AwaitReceive(absl::Duration limit = absl::InfiniteDuration());
  absl::Status AwaitAllSends(absl::Duration limit = absl::InfiniteDuration());
  // A send that nobody awaits.
  absl::Status Post(int peer, uint64_t slot, size_t offset, size_t bytes);
  // A receive of whatever peer sends under this slot, for Watch. REQUIRES: no other receive of this region is under
  // way.
  absl::Status ReceiveFromAnyone(uint64_t slot, size_t offset, size_t bytes);
  // Waits without a limit for any of this region's receives, or for the loss of a connection. Returns the peer whose
  // message is complete. An error does not break the mesh.
  absl::StatusOr<int> Watch();

 private:
  struct Transfer {
    int peer;
    size_t bytes;
  };
  Mesh& mesh_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  std::deque<Transfer> sends_;
  std::deque<Transfer> receives_;
};

class Mesh {
 public:
  // Opens this rank's listening sockets on `host`. `names`: what notes call the ranks; may be empty.
  static absl::StatusOr<std::unique_ptr<Mesh>> Open(const std::string& host, int rank, int size,
                                                    std::vector<std::string> names);
  ~Mesh();

  // Exchanges addresses through the store, under keys that begin with `prefix`, and connects to every peer.
  absl::Status Connect(RendezvousStore& store, const std::string& prefix, absl::Duration limit);

  int rank() const { return rank_; }
  int size() const { return size_; }
  // "worker-1 at 10.0.0.2:4711", or "rank 1" where it has no name.
  const std::string& NameOf(int rank) const { return names_[static_cast<size_t>(rank)]; }

  // Ends every wait with `cause` as Aborted. True for the first cause. Does not touch the network.
  bool Break(const absl::Status& cause);
  absl::Status status() const;
  uint64_t bytes_moved() const { return bytes_moved_.load(std::memory_order_relaxed); }

  // The lowest rank whose connection is broken, or -1.
  int LostPeer();
  // After Break: sends `note` to every peer under `slot`, as far as that succeeds within `limit`. Blocks until then.
  void SendLastNote(uint64_t slot, std::string note, absl::Duration limit);
  // Closes all connections: what peers wait for from here ends. Waits for
  // Gloo's event loop; any thread, once.
  void Close();

 private:
  friend class Region;
  enum class Direction { kSend, kReceive };
  class PairContext;

  Mesh(std::unique_ptr<PairContext> context, std::vector<std::string> names);
  absl::Status ConnectPeer(int peer, const std::string& addresses);
  absl::Status Await(gloo::transport::UnboundBuffer& buffer, Direction direction, int peer, size_t bytes,
                     absl::Duration limit);
  // As Await, but says who was heard, and leaves the mesh as it is.
  absl::StatusOr<int> AwaitAnyone(gloo::transport::UnboundBuffer& buffer, Direction direction, absl::Duration limit);
  // Breaks the mesh because of `peer` and returns the mesh's status.
  absl::Status BreakFor(int peer, const std::string& what);

  const int rank_;
  const int size_;
  const std::unique_ptr<PairContext> context_;
  std::vector<std::string> names_;  // by rank
  std::atomic<uint64_t> bytes_moved_{0};
  mutable Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // What threads are inside Await for: at most one each of the queue, the watch and the lifeline.
  std::vector<std::pair<gloo::transport::UnboundBuffer*, Direction>> awaited_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_GLOO_MESH_H_
