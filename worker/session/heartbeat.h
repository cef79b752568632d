// Tells the chief every half second that this process lives and how far its work has come: a thread and a channel of
// its own, so that neither a long kernel nor a big upload silences it.
//
// Threading: thread-safe; owns one thread.
#ifndef LOCKSTEP_WORKER_SESSION_HEARTBEAT_H_
#define LOCKSTEP_WORKER_SESSION_HEARTBEAT_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "common/net/answer_limit.h"
#include "common/protocol/messages.h"
#include "common/sync/mutex.h"
#include "worker/session/chief_client.h"

namespace lockstep::worker {

// What is asked at every beat.
struct LifeSigns {
  uint64_t progress = 0;        // nodes executed + bytes moved, never decreasing
  bool waits_for_peer = false;  // the thread that computes waits for other ranks
  std::string doing;            // what that thread has been at for a while, for people; "": nothing for long
};

// The phase that a beat reports. A worker that computes or forms and waits for a peer is not to blame for standing
// still (rule 6).
Heartbeat::Phase PhaseOfBeat(Heartbeat::Phase phase, const LifeSigns& signs);

// What the end of a beat that took so long tells of the time that an answer takes. A beat that no chief heard tells
// nothing.
void Learn(AnswerLimit& limit, grpc::StatusCode code, absl::Duration took);

class HeartbeatThread {
 public:
  // How long an answer is waited for at least. At most: several beats must fit into the silence after which a worker
  // counts as lost.
  static constexpr absl::Duration kLeastAnswerLimit = absl::Seconds(1);
  static constexpr absl::Duration kMostAnswerLimit = absl::Seconds(3);

  struct Options {
    const ChiefClient* client = nullptr;
    absl::Duration interval;
    std::function<LifeSigns()> signs;         // does not block
    std::function<void(Term term)> answered;  // a chief of this term answered a beat; does not block
    absl::Duration least_answer_limit = kLeastAnswerLimit;
  };

  explicit HeartbeatThread(Options options);
  ~HeartbeatThread();

  // What the beats carry from here on. Nothing is sent before the first call.
  void Set(const WorkerFence& fence, Heartbeat::Phase phase, const Position& position);

 private:
  void Run();

  const Options options_;
  AnswerLimit limit_;
  Mutex mutex_;
  CondVar changed_;
  bool stop_ GUARDED_BY(mutex_) = false;
  bool set_ GUARDED_BY(mutex_) = false;
  WorkerFence fence_ GUARDED_BY(mutex_);
  Heartbeat heartbeat_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_HEARTBEAT_H_
