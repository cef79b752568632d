// The calls of a communicator that are under way, and the connections to its peers, without a thread: whoever calls
// Send and Receive sends, receives, sums and ends calls.
//
// Threading: owned by one thread at a time. Interrupt and bytes_moved are thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_CALLS_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_CALLS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/storage/descriptor.h"
#include "worker/collectives/call.h"
#include "worker/collectives/shared/host_memory.h"
#include "worker/collectives/sockets/call_words.h"
#include "worker/collectives/sockets/early_frames.h"
#include "worker/collectives/sockets/exchange.h"
#include "worker/collectives/sockets/peer_link.h"
#include "worker/collectives/sockets/silence_watch.h"

namespace lockstep::worker {

struct SocketGroup {
  Generation generation;
  int rank = 0;
  int size = 1;
  // Names of the ranks for messages: "worker-1 at 10.0.0.2:4711". SocketForming fills in missing ones.
  std::vector<std::string> names = {};
  absl::Duration ask_every = absl::Seconds(30);
  absl::Duration answer_limit = absl::Seconds(30);
  // The largest piece of a block, the same on every rank.
  int64_t piece_elements = 16 * 1024;
};

class PeerCalls final : public LinkEvents {
 public:
  // As MakeSocketCommunicator takes them.
  PeerCalls(SocketGroup group, std::vector<std::unique_ptr<PeerStream>> streams, std::unique_ptr<HostMemory> memory);

  // Call it first. Unavailable when the process is out of descriptors.
  absl::Status Open();

  const SocketGroup& group() const { return group_; }
  // Bytes sent and received so far, over connections and in shared memory.
  uint64_t bytes_moved() const { return bytes_moved_.load(std::memory_order_relaxed); }

  // A descriptor that poll reports as readable while Receive has something to do, also after Interrupt.
  int fd() const { return epoll_.get(); }
  // Ends the wait of a Receive, or of the next one. Thread-safe.
  void Interrupt();
  // When Receive must be called at the latest, to ask peers that are silent.
  absl::Time NextLook() const { return silence_.NextLook(); }

  // Starts a call. After an error of this or of another function the communicator is broken: Close.
  absl::Status Begin(Call call);
  // Sends what the connections accept now, and ends calls that are done.
  absl::Status Send();
  // Receives what has come, then Send. When nothing has come, it first blocks until something does, Interrupt, or
  // `wait` has passed. Returns whether something came: then there may be more at once.
  absl::StatusOr<bool> Receive(absl::Duration wait);

  // Ends every call, tells the peers why, and closes the connections.
  void Close(const absl::Status& cause);

 private:
  struct Peer {
    std::unique_ptr<PeerLink> link;
    bool wants_write = false;
    std::vector<char> scratch;
    std::vector<char> small;              // of a frame that is not for a call
    std::map<uint64_t, CallWords> is_in;  // calls that it said it is in, until this rank is done with them
    std::set<uint64_t> sent_ahead;        // calls that were sent to it before it said that
    EarlyFrames early;
    Peer();
  };

  absl::StatusOr<char*> PlaceFor(int rank, const FrameHead& head) override;
  absl::Status OnReceived(int rank, const FrameHead& head, char* place) override;

  int size() const { return group_.size; }
  absl::Status Compare(const Peer& peer, uint64_t sequence, const CallWords& words);
  absl::Status WriteTo(Peer& peer);
  void EndDone();
  absl::StatusOr<bool> ReceiveWaiting();
  absl::StatusOr<bool> AwaitAndReceive(absl::Duration wait);
  absl::Status ReadFrom(int rank);
  absl::Status AskWhoIsSilent(absl::Time meant);
  // Sends a frame without bytes.
  void SendMark(int rank, FrameKind kind) { peers_[static_cast<size_t>(rank)].link->Send({.head = {.kind = kind}}); }
  absl::Status SaidToBeIn(Peer& peer, const FrameHead& head, const char* place);

  SocketGroup group_;
  const std::unique_ptr<HostMemory> memory_;  // may be null
  Descriptor epoll_;
  Descriptor wake_;
  SilenceWatch silence_;
  std::vector<Peer> peers_;   // by rank
  std::vector<Peer*> links_;  // the other ranks
  std::map<uint64_t, std::unique_ptr<Exchange>> active_;
  uint64_t last_begun_ = 0;
  uint64_t shared_bytes_ = 0;  // of calls that have ended
  std::atomic<uint64_t> bytes_moved_{0};
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_CALLS_H_
