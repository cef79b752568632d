// All of the newest generation that an abort must reach: its rendezvous, what is fetched for it, the forming of its
// communicator, the communicator. Only the engine's thread forms, keeps and closes one; whoever aborts may come at any
// time.
//
// Invariants
//   * What was aborted starts nothing any more: every call for a generation that is over, or is not the newest, fails
//     with Aborted.
//   * Keys that arrive before their generation begins are kept for it.
// Threading: thread-safe. Nothing here waits but LostPeer.
#ifndef LOCKSTEP_WORKER_SESSION_GENERATION_CALLS_H_
#define LOCKSTEP_WORKER_SESSION_GENERATION_CALLS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"
#include "common/sync/mutex.h"
#include "worker/collectives/communicator.h"
#include "worker/collectives/sockets/socket_forming.h"
#include "worker/session/chief_client.h"
#include "worker/session/session_store.h"

namespace lockstep::worker {

// A worker in a generation; rank -1: it computes with nobody.
struct OwnMember {
  Generation generation;
  std::string name;
  int rank = -1;
};

class GenerationCalls {
 public:
  // A generation begins. Returns the communicator of the one before, which takes a while to close; null: there was
  // none.
  std::shared_ptr<Communicator> Begin(const Generation& generation, const std::vector<Member>& members,
                                      std::shared_ptr<SessionStore> store);
  // A rendezvous key of a generation, from another member.
  void Deliver(const Generation& generation, const std::string& key, const std::string& value);
  // Ends what is under way for `generation`, and lets nothing of it begin. False: it is not the newest.
  bool Abort(const Generation& generation, const absl::Status& cause);

  // Null: it is over, or not the newest.
  std::shared_ptr<SocketForming> StartForming(const Generation& generation, const SocketForming::Options& options,
                                              PeerListener& listener);
  // Makes `communicator` that of the generation; `status` where that is not OK, or why the generation is over.
  absl::Status Keep(const Generation& generation, absl::Status status,
                    const std::shared_ptr<Communicator>& communicator);
  // Waits until nobody else holds the generation's communicator, and closes it.
  void Close(const Generation& generation);

  absl::StatusOr<std::shared_ptr<Communicator>> CommunicatorOf(const Generation& generation) const;
  // What an abort cancels besides; an error when the newest generation was aborted.
  absl::StatusOr<std::shared_ptr<CallGroup>> Fetches() const;

  bool IsNewest(const Generation& generation) const;
  Generation newest() const;
  OwnMember Own() const;
  // Moved by all communicators so far.
  uint64_t bytes_moved() const;
  // The member that `status`, or the communicator's end, blames; none when they blame nobody.
  Incarnation Suspect(const Generation& generation, const absl::Status& status) const;
  // Whether a generation of this worker lost a peer lately. Waits up to 5 s for the news of it.
  bool LostPeer() const;

 private:
  mutable Mutex mutex_;
  Generation generation_ GUARDED_BY(mutex_);
  std::vector<Member> members_ GUARDED_BY(mutex_);
  std::shared_ptr<SessionStore> store_ GUARDED_BY(mutex_);
  std::shared_ptr<CallGroup> fetches_ GUARDED_BY(mutex_);
  std::shared_ptr<SocketForming> forming_ GUARDED_BY(mutex_);  // while the communicator is formed
  std::shared_ptr<Communicator> communicator_ GUARDED_BY(mutex_);
  absl::Status aborted_ GUARDED_BY(mutex_);
  absl::Time broken_at_ GUARDED_BY(mutex_) = absl::InfinitePast();  // the newest generation of several that was
  std::vector<std::pair<Generation, std::pair<std::string, std::string>>> early_keys_ GUARDED_BY(mutex_);
  uint64_t retired_bytes_ GUARDED_BY(mutex_) = 0;  // moved by communicators that are gone
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_GENERATION_CALLS_H_
