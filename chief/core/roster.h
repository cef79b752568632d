// The workers that are connected now: who they are, what they hold and what they are believed to run. Whoever loses its
// session leaves the roster and comes back by a new Hello.
//
// Invariants
//   * One entry per incarnation, one per session, one per name.
//   * `held` is known only while `busy` is none: nobody trusts a position of a worker that may be stepping.
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_ROSTER_H_
#define LOCKSTEP_CHIEF_CORE_ROSTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/core/events.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

struct HeldState {
  Lineage lineage;
  Position position;
  Digest digest;
};

struct Worker {
  enum class Stage : uint8_t { kWelcomed, kPlanning, kPreparing, kReady };

  Member member;
  SessionId session = 0;
  uint64_t order = 0;  // of its Hello
  std::string host;
  std::string device;
  uint64_t step = 0;  // its newest heartbeat's, for people only
  std::string doing;  // likewise
  Stage stage = Stage::kWelcomed;
  Ready ready;  // when kReady

  Generation busy;                   // that it runs or may still run; none: at rest
  bool verdict_sent = false;         // for `busy`
  bool finished = false;             // holds the last snapshot and waits for Done
  std::vector<Member> claims;        // members of `busy` as its Hello named them …
  std::optional<HeldState> claimed;  // … and where it stood then: used for an adoption only
  Generation last_generation;        // for commands at rest
  std::optional<HeldState> held;
  std::optional<Position> rest_asked;  // TakeSnapshot was sent for this position

  bool leaving = false;
  bool dismissed = false;

  // Life signs (rules 8, 17).
  absl::Time heard;
  absl::Time progressed;
  uint64_t progress = 0;
  Heartbeat::Phase phase = Heartbeat::Phase::kIdle;

  const Incarnation& id() const { return member.incarnation; }
  const std::string& name() const { return member.name; }
  bool AtRest() const { return busy.IsNone(); }
  bool IsReady() const { return stage == Stage::kReady; }
};

// Whether a worker in this phase must make progress: one that waits for a peer or the chief need not (rule 6).
inline bool Works(Heartbeat::Phase phase) {
  return phase == Heartbeat::Phase::kPreparing || phase == Heartbeat::Phase::kForming ||
         phase == Heartbeat::Phase::kComputing;
}

class Roster {
 public:
  Worker* Find(const Incarnation& incarnation) {
    const auto it = workers_.find(incarnation);
    return it == workers_.end() ? nullptr : &it->second;
  }
  Worker* BySession(SessionId session) {
    for (auto& [id, worker] : workers_) {
      if (worker.session == session) return &worker;
    }
    return nullptr;
  }
  Worker* ByName(const std::string& name) {
    for (auto& [id, worker] : workers_) {
      if (worker.name() == name) return &worker;
    }
    return nullptr;
  }
  // The name to give: the preferred one when it is free, else the first free worker-<n>.
  std::string FreeName(const std::string& preferred) {
    if (!preferred.empty() && ByName(preferred) == nullptr) return preferred;
    for (uint64_t n = 0;; ++n) {
      std::string name = absl::StrCat("worker-", n);
      if (ByName(name) == nullptr) return name;
    }
  }
  Worker& Add(Worker worker) {
    worker.order = next_order_++;
    return workers_[worker.id()] = std::move(worker);
  }
  void Remove(const Incarnation& incarnation) { workers_.erase(incarnation); }

  // In the order of their Hellos, which is the order of ranks.
  std::vector<Worker*> InOrder() {
    std::map<uint64_t, Worker*> by_order;
    for (auto& [id, worker] : workers_) by_order[worker.order] = &worker;
    std::vector<Worker*> list;
    for (auto& [order, worker] : by_order) list.push_back(worker);
    return list;
  }
  size_t size() const { return workers_.size(); }

 private:
  std::map<Incarnation, Worker> workers_;
  uint64_t next_order_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_ROSTER_H_
