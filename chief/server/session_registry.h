// The open sessions, by number: the way of the loop's commands to the streams of their workers.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_CHIEF_SERVER_SESSION_REGISTRY_H_
#define LOCKSTEP_CHIEF_SERVER_SESSION_REGISTRY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/events.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"
#include "common/sync/mutex.h"
#include "protos/session.pb.h"

namespace lockstep::chief {

// The chief's end of one worker's stream.
class SessionStream {
 public:
  virtual ~SessionStream() = default;
  // Queues a command. Never blocks; dropped once the stream is closing.
  virtual void Send(std::shared_ptr<const proto::ChiefEnvelope> command) = 0;
  // Sends what is queued, then ends the stream. `handed_over`: the worker is to wait for the next chief.
  virtual void Close(bool handed_over) = 0;
};

class SessionRegistry {
 public:
  // Registers a stream and returns its new number.
  SessionId Add(std::shared_ptr<SessionStream> stream);
  void Remove(SessionId session);
  // The session belongs to `worker`, according to its Hello.
  void SaidHello(SessionId session, const Incarnation& worker);
  // Whether a session of this process is open.
  bool Has(const Incarnation& worker) const;
  // The number of processes that have an open session.
  size_t workers() const;
  // Queues a command; it is dropped if the session is gone.
  void Send(SessionId session, const ChiefFence& fence, const ChiefCommand& command);
  // Queues one command on each of the sessions, which share one message.
  void Send(const std::vector<SessionId>& sessions, const ChiefFence& fence, const ChiefCommand& command);
  void Close(SessionId session);

  // The chief takes no more messages and will call CloseAll. Until then a session that cannot pass a message on stays
  // open, so that its worker learns how the chief ended.
  void BeginClosing() { closing_ = true; }
  bool closing() const { return closing_; }
  // Closes every session and waits until they are gone, at most `limit`. `handed_over`: workers wait for the next
  // chief.
  void CloseAll(absl::Duration limit, bool handed_over);

 private:
  std::shared_ptr<SessionStream> Find(SessionId session);
  void ForgetWorkerLocked(SessionId session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<bool> closing_{false};
  mutable Mutex mutex_;
  CondVar removed_;
  SessionId last_ GUARDED_BY(mutex_) = 0;
  std::map<SessionId, std::shared_ptr<SessionStream>> sessions_ GUARDED_BY(mutex_);
  std::map<SessionId, Incarnation> workers_ GUARDED_BY(mutex_);  // the worker of each session that said Hello
  std::map<Incarnation, size_t> open_ GUARDED_BY(mutex_);        // its sessions; read by every fetch and share
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_SESSION_REGISTRY_H_
