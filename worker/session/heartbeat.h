// Sends the chief a heartbeat every half second with this worker's phase and progress. It has a thread and a channel of
// its own, so that neither a long kernel nor a large upload delays it.
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

// The state of the worker's computation, queried for every heartbeat.
struct LifeSigns {
  uint64_t progress = 0;        // nodes executed + bytes moved; never decreases
  bool waits_for_peer = false;  // the engine thread waits for other ranks
  std::string doing;            // for people: what the engine thread has been doing for a while; "": nothing for long
};

// The phase that a heartbeat reports. A worker that computes or forms and waits for a peer is not to blame for a lack
// of progress (rule 6).
Heartbeat::Phase PhaseOfBeat(Heartbeat::Phase phase, const LifeSigns& signs);

// Adapts the time limit of answers to a heartbeat that ended with `code` after `took`. A heartbeat that no chief
// received is ignored.
void Learn(AnswerLimit& limit, grpc::StatusCode code, absl::Duration took);

class HeartbeatThread {
 public:
  // Bounds of the time limit for an answer. The upper bound is chosen so that several heartbeats fit into the silence
  // after which a worker counts as lost.
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

  // Sets the contents of the following heartbeats. None is sent before the first call.
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
