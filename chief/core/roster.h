// The connected workers: their identity, the state that they hold, and the generation that they are believed to run. A
// worker whose session ends leaves the roster and comes back with a new Hello.
//
// Invariants
//   * One entry per incarnation, one per session, one per name; a worker keeps its session and its name.
//   * `held` is set only while `busy` is none: the position of a worker that may be stepping is not trusted.
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_ROSTER_H_
#define LOCKSTEP_CHIEF_CORE_ROSTER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
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
  uint64_t order = 0;  // order of arrival of its Hello
  std::string host;
  std::string device;
  uint64_t step = 0;  // of its newest heartbeat, for people only
  std::string doing;  // likewise
  Stage stage = Stage::kWelcomed;
  Ready ready;  // when kReady

  Generation busy;            // the generation that it runs or may still run; none: at rest
  bool verdict_sent = false;  // for `busy`
  bool finished = false;      // holds the last snapshot and waits for Done
  // Members of `busy`; null: not known yet. Shared by all workers that claim the same list (member_claims.h).
  std::shared_ptr<const std::vector<Member>> claims;
  Digest claim;                                // the digest of `claims`, from its Hello; empty: it named no members
  std::vector<SnapshotTaken> early_snapshots;  // of `busy`, kept until its members are known
  std::optional<HeldState> claimed;            // its state at its Hello, updated by reports; used for an adoption only
  Generation last_generation;                  // fences commands to a worker at rest
  std::optional<HeldState> held;
  std::optional<Position> rest_asked;  // TakeSnapshot was sent for this position
  std::vector<KeptState> kept;         // copies of audited states, as reported when it came to rest

  bool leaving = false;
  bool drained = false;  // it leaves only because of a drain, which it does not know of
  bool dismissed = false;
  std::optional<Refused> unfit;  // set if it could not prepare: it leaves, and is refused once no state would be lost

  // Life signs (rules 8, 17).
  absl::Time heard;
  absl::Time progressed;
  uint64_t progress = 0;
  Heartbeat::Phase phase = Heartbeat::Phase::kIdle;

  const Incarnation& id() const { return member.incarnation; }
  const std::string& name() const { return member.name; }
  bool AtRest() const { return busy.IsNone(); }
  bool IsReady() const { return stage == Stage::kReady; }
  void Keeps(std::vector<KeptState> states) {
    if (states.size() > kMaxKeptStates) states.resize(kMaxKeptStates);
    kept = std::move(states);
  }
};

// Whether a worker in this phase must make progress: one that waits for a peer or for the chief need not (rule 6).
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
    const auto it = by_session_.find(session);
    return it == by_session_.end() ? nullptr : it->second;
  }
  Worker* ByName(const std::string& name) {
    const auto it = by_name_.find(name);
    return it == by_name_.end() ? nullptr : it->second;
  }
  // The name to give: the preferred one if it is free, else the first free worker-<n> that is not `reserved`.
  std::string FreeName(const std::string& preferred, const std::function<bool(const std::string&)>& reserved) {
    if (!preferred.empty() && ByName(preferred) == nullptr) return preferred;
    for (uint64_t n = lowest_free_;; ++n) {
      std::string name = absl::StrCat(kNamePrefix, n);
      const bool taken = ByName(name) != nullptr;
      if (taken && n == lowest_free_) ++lowest_free_;
      if (!taken && !reserved(name)) return name;
    }
  }
  // REQUIRES: no worker in the roster has its incarnation, its session or its name.
  Worker& Add(Worker worker) {
    worker.order = next_order_++;
    Worker& added = workers_[worker.id()] = std::move(worker);
    by_session_[added.session] = &added;
    by_name_[added.name()] = &added;
    in_order_.push_back(&added);
    return added;
  }
  void Remove(const Incarnation& incarnation) {
    const auto it = workers_.find(incarnation);
    if (it == workers_.end()) return;
    const Worker& worker = it->second;
    uint64_t number = 0;
    if (absl::SimpleAtoi(absl::StripPrefix(worker.name(), kNamePrefix), &number)) {
      lowest_free_ = std::min(lowest_free_, number);
    }
    by_session_.erase(worker.session);
    by_name_.erase(worker.name());
    in_order_.erase(std::find(in_order_.begin(), in_order_.end(), &worker));
    workers_.erase(it);
  }

  // All workers in the order of their Hellos, which is the order of ranks. Returns a copy, so workers may be removed
  // during iteration.
  std::vector<Worker*> InOrder() const { return in_order_; }
  size_t size() const { return workers_.size(); }
  // Whether no two workers share a session or a name.
  bool IsDistinct() const { return by_session_.size() == workers_.size() && by_name_.size() == workers_.size(); }

 private:
  static constexpr absl::string_view kNamePrefix = "worker-";

  std::map<Incarnation, Worker> workers_;
  std::unordered_map<SessionId, Worker*> by_session_;
  std::unordered_map<std::string, Worker*> by_name_;
  std::vector<Worker*> in_order_;  // by `order`
  uint64_t next_order_ = 0;
  uint64_t lowest_free_ = 0;  // no worker-<n> with a lower number is free
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_ROSTER_H_
