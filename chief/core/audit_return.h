// The last part of the way back after replicas differed (rule 22): which state the job goes on from. Audited states
// that workers kept in memory are newer than the audited checkpoint; they are tried from the newest down.
//
//   1 none ──Begin──▶ 2 choosing ──Next──▶ 3 asked: ReturnTo was sent to every holder of one state
//      ▲                 ▲  │                │  all have answered, are gone, or are late (and are given up)
//      │                 └──┼── none has it ─┤
//      └── Take ── 4 settled ◀── one has it ─┘
//                       (also when no state is left: then it is the checkpoint)
//
// Every state is tried once and for a bounded time, so the way back ends.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_AUDIT_RETURN_H_
#define LOCKSTEP_CHIEF_CORE_AUDIT_RETURN_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "common/protocol/ids.h"
#include "common/protocol/kept_state.h"

namespace lockstep::chief {

class AuditReturn {
 public:
  // For a worker to verify a large copy, and to bring it to its device.
  static constexpr absl::Duration kPatience = absl::Seconds(20);
  // For one that lost its session to come back: what it took up meanwhile it says in its Hello.
  static constexpr absl::Duration kComesBack = absl::Seconds(3);

  // A copy that may be used: its worker is at rest and not named, and all members had this state.
  struct Offer {
    Incarnation holder;
    KeptState state;
    absl::Duration trained_for;  // of the job, at that state
  };
  struct Order {
    KeptState state;
    std::vector<Incarnation> holders;
  };
  // What the job goes on from.
  struct Outcome {
    WentBack told;
    absl::Duration trained_for;
  };

  // The way back is durable. `to_checkpoint`: the outcome where none of the offers can be used.
  void Begin(Outcome to_checkpoint, const std::vector<Offer>& offers) {
    pending_ = true;
    outcome_ = std::move(to_checkpoint);
    choices_.clear();
    asked_.reset();
    for (const Offer& offer : offers) {
      Choice& choice = choices_[{offer.state.position, offer.state.digest}];
      choice.trained_for = offer.trained_for;
      choice.holders[offer.holder] = offer.state;
    }
  }
  bool pending() const { return pending_; }
  // The newest step that is still to be tried, or is being tried.
  std::optional<uint64_t> Newest() const {
    if (asked_.has_value()) return asked_->position.step;
    if (choices_.empty()) return std::nullopt;
    return choices_.rbegin()->first.first.step;
  }

  // The next state to ask for, of every holder of it that `is_there`; they have until `limit`. Nullopt: answers are
  // awaited, or there is an outcome.
  template <typename IsThere>
  std::optional<Order> Next(absl::Time limit, IsThere is_there) {
    if (!pending_ || asked_.has_value()) return std::nullopt;
    while (!choices_.empty()) {
      const auto newest = std::prev(choices_.end());
      const Choice choice = std::move(newest->second);
      choices_.erase(newest);
      Order order;
      for (const auto& [holder, state] : choice.holders) {
        if (!is_there(holder)) continue;
        order.state = state;
        order.holders.push_back(holder);
      }
      if (order.holders.empty()) continue;
      asked_ = order.state;
      trained_for_ = choice.trained_for;
      awaited_.clear();
      for (const Incarnation& holder : order.holders) awaited_[holder] = limit;
      returned_ = false;
      return order;
    }
    return std::nullopt;
  }
  // An answer. True: it was awaited.
  bool Answered(const Incarnation& holder, const KeptState& state, bool done) {
    if (!IsAsked(state) || awaited_.erase(holder) == 0) return false;
    returned_ = returned_ || done;
    return true;
  }
  // A holder said Hello, at rest with this state or with none: that is its answer.
  void CameBack(const Incarnation& holder, const std::optional<Position>& took_up) {
    if (awaited_.count(holder) == 0) return;
    Answered(holder, *asked_, took_up == asked_->position);
  }
  // A holder lost its session.
  void Lost(const Incarnation& holder, absl::Time now) {
    const auto found = awaited_.find(holder);
    if (found != awaited_.end()) found->second = std::min(found->second, now + kComesBack);
  }
  // Those who were to have answered by `now`: they are awaited no longer.
  std::vector<Incarnation> TakeLate(absl::Time now) {
    std::vector<Incarnation> late;
    for (auto it = awaited_.begin(); it != awaited_.end();) {
      if (it->second > now) {
        ++it;
        continue;
      }
      late.push_back(it->first);
      it = awaited_.erase(it);
    }
    return late;
  }
  // The checkpoint does, unless a copy was taken up already.
  void StopTrying() {
    choices_.clear();
    awaited_.clear();
  }
  // Whether an answer is awaited.
  bool Waits() const { return asked_.has_value() && !awaited_.empty(); }
  absl::Time limit() const {
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [holder, limit] : awaited_) next = std::min(next, limit);
    return next;
  }

  // What came of it; nullopt: nothing yet, ask for the Next. Ends the way back.
  std::optional<Outcome> Take() {
    if (!pending_ || Waits()) return std::nullopt;
    if (asked_.has_value() && !returned_) asked_.reset();
    if (!asked_.has_value() && !choices_.empty()) return std::nullopt;
    pending_ = false;
    choices_.clear();
    if (asked_.has_value()) {
      outcome_.told.step = asked_->position.step;
      outcome_.told.from_copy = true;
      outcome_.trained_for = trained_for_;
      asked_.reset();
    }
    return outcome_;
  }

  void ShiftDeadlines(absl::Duration gap) {
    for (auto& [holder, limit] : awaited_) limit += gap;
  }

 private:
  struct Choice {
    absl::Duration trained_for;
    std::map<Incarnation, KeptState> holders;  // lineages may differ in name
  };

  bool IsAsked(const KeptState& state) const {
    return asked_.has_value() && asked_->position == state.position && asked_->digest == state.digest;
  }

  bool pending_ = false;
  Outcome outcome_;
  std::map<std::pair<Position, Digest>, Choice> choices_;
  std::optional<KeptState> asked_;
  absl::Duration trained_for_;
  std::map<Incarnation, absl::Time> awaited_;  // until then
  bool returned_ = false;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_AUDIT_RETURN_H_
