// Tells the chief every half second that this process lives and how far its work has come: a thread and a channel of
// its own, so that neither a long kernel nor a big upload silences it.
//
// Threading: thread-safe; owns one thread.
#ifndef LOCKSTEP_WORKER_SESSION_HEARTBEAT_H_
#define LOCKSTEP_WORKER_SESSION_HEARTBEAT_H_

#include <functional>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "common/protocol/messages.h"
#include "common/sync/mutex.h"
#include "worker/session/chief_client.h"

namespace lockstep::worker {

// What is asked at every beat.
struct LifeSigns {
  uint64_t progress = 0;        // nodes executed + bytes moved, never decreasing
  bool waits_for_peer = false;  // the thread that computes waits for other ranks
};

// What a beat says: who computes or forms and waits for a peer is not to blame for standing still (rule 6).
Heartbeat::Phase PhaseOfBeat(Heartbeat::Phase phase, const LifeSigns& signs);

class HeartbeatThread {
 public:
  // `signs` does not block.
  HeartbeatThread(const ChiefClient* client, absl::Duration interval, std::function<LifeSigns()> signs);
  ~HeartbeatThread();

  // What the beats carry from here on. Nothing is sent before the first call.
  void Set(const WorkerFence& fence, Heartbeat::Phase phase, const Position& position);

 private:
  void Run();

  const ChiefClient* const client_;
  const absl::Duration interval_;
  const std::function<LifeSigns()> signs_;
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
