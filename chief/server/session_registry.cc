#include "chief/server/session_registry.h"

#include <chrono>
#include <utility>
#include <vector>

#include "common/protocol/wire.h"

namespace lockstep::chief {

SessionId SessionRegistry::Add(std::shared_ptr<SessionStream> stream) {
  MutexLock lock(&mutex_);
  sessions_[++last_] = std::move(stream);
  return last_;
}

void SessionRegistry::Remove(SessionId session) {
  std::shared_ptr<SessionStream> removed;  // outlives the lock
  MutexLock lock(&mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  removed = std::move(found->second);
  sessions_.erase(found);
  ForgetWorkerLocked(session);
  removed_.SignalAll();
}

void SessionRegistry::ForgetWorkerLocked(SessionId session) {
  const auto worker = workers_.find(session);
  if (worker == workers_.end()) return;
  const auto open = open_.find(worker->second);
  if (--open->second == 0) open_.erase(open);
  workers_.erase(worker);
}

void SessionRegistry::SaidHello(SessionId session, const Incarnation& worker) {
  MutexLock lock(&mutex_);
  if (sessions_.count(session) == 0) return;
  ForgetWorkerLocked(session);  // a Hello may be said again
  workers_[session] = worker;
  ++open_[worker];
}

bool SessionRegistry::Has(const Incarnation& worker) const {
  MutexLock lock(&mutex_);
  return open_.count(worker) != 0;
}

std::shared_ptr<SessionStream> SessionRegistry::Find(SessionId session) {
  MutexLock lock(&mutex_);
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : found->second;
}

size_t SessionRegistry::workers() const {
  MutexLock lock(&mutex_);
  return open_.size();
}

void SessionRegistry::Send(SessionId session, const ChiefFence& fence, const ChiefCommand& command) {
  Send(std::vector<SessionId>{session}, fence, command);
}

void SessionRegistry::Send(const std::vector<SessionId>& sessions, const ChiefFence& fence,
                           const ChiefCommand& command) {
  const auto envelope = std::make_shared<const proto::ChiefEnvelope>(ToWire(fence, command));
  for (const SessionId session : sessions) {
    if (const auto stream = Find(session)) stream->Send(envelope);
  }
}

void SessionRegistry::Close(SessionId session) {
  if (const auto stream = Find(session)) stream->Close(/*handed_over=*/false);
}

void SessionRegistry::CloseAll(absl::Duration limit, bool handed_over) {
  std::vector<std::shared_ptr<SessionStream>> streams;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, stream] : sessions_) streams.push_back(stream);
  }
  for (const auto& stream : streams) stream->Close(handed_over);
  streams.clear();
  const auto until = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(limit);
  MutexLock lock(&mutex_);
  while (!sessions_.empty()) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) return;
    removed_.WaitWithTimeout(&mutex_, absl::FromChrono(left));
  }
}

}  // namespace lockstep::chief
