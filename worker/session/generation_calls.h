// The parts of the newest generation that an abort must reach: its rendezvous store, fetches, the forming of its
// communicator, and the communicator. The engine's thread forms, keeps and closes them; any thread may abort.
//
// Invariants
//   * An aborted generation starts nothing any more: calls for a generation that is over, or not the newest, fail with
//     Aborted.
//   * Keys that arrive before their generation begins are kept for it.
//
// Threading: thread-safe. Only Close and LostPeer block.
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

// This worker as a member of a generation; rank -1: of none.
struct OwnMember {
  Generation generation;
  std::string name;
  int rank = -1;
};

class GenerationCalls {
 public:
  // Begins a generation. Returns the communicator of the previous one, whose destruction takes a while; null if there
  // was none.
  std::shared_ptr<Communicator> Begin(const Generation& generation, const std::vector<Member>& members,
                                      std::shared_ptr<SessionStore> store);
  // Delivers a rendezvous key of a generation from another member.
  void Deliver(const Generation& generation, const std::string& key, const std::string& value);
  // Ends the work of `generation` and prevents new work. False: it is not the newest.
  bool Abort(const Generation& generation, const absl::Status& cause);

  // Null: the generation is over, or not the newest.
  std::shared_ptr<SocketForming> StartForming(const Generation& generation, const SocketForming::Options& options,
                                              PeerListener& listener);
  // Ends the forming: if `status` is OK, keeps `communicator` as the generation's. Returns `status`, or the reason why
  // the generation is over.
  absl::Status Keep(const Generation& generation, absl::Status status,
                    const std::shared_ptr<Communicator>& communicator);
  // Destroys the generation's communicator, after waiting until no other thread uses it.
  void Close(const Generation& generation);

  absl::StatusOr<std::shared_ptr<Communicator>> CommunicatorOf(const Generation& generation) const;
  // The group for fetches that an abort cancels; an error if the newest generation was aborted.
  absl::StatusOr<std::shared_ptr<CallGroup>> Fetches() const;

  bool IsNewest(const Generation& generation) const;
  Generation newest() const;
  OwnMember Own() const;
  // The bytes moved by all communicators so far.
  uint64_t bytes_moved() const;
  // The member that `status`, or the communicator's status, blames; none if they blame nobody.
  Incarnation Suspect(const Generation& generation, const absl::Status& status) const;
  // Whether a generation of this worker lost a peer recently. Blocks up to 5 s for evidence.
  bool LostPeer() const;

 private:
  mutable Mutex mutex_;
  Generation generation_ GUARDED_BY(mutex_);
  std::vector<Member> members_ GUARDED_BY(mutex_);
  std::shared_ptr<SessionStore> store_ GUARDED_BY(mutex_);
  std::shared_ptr<CallGroup> fetches_ GUARDED_BY(mutex_);
  std::shared_ptr<SocketForming> forming_ GUARDED_BY(mutex_);  // while the communicator forms
  std::shared_ptr<Communicator> communicator_ GUARDED_BY(mutex_);
  absl::Status aborted_ GUARDED_BY(mutex_);
  // When the latest generation of several members broke.
  absl::Time broken_at_ GUARDED_BY(mutex_) = absl::InfinitePast();
  std::vector<std::pair<Generation, std::pair<std::string, std::string>>> early_keys_ GUARDED_BY(mutex_);
  uint64_t retired_bytes_ GUARDED_BY(mutex_) = 0;  // moved by destroyed communicators
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_GENERATION_CALLS_H_
