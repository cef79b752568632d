// The last part of the way back after replicas differed (rule 22): the choice of the state from which the job
// continues. Audited states that workers kept in memory may be newer than the audited checkpoint; they are tried from
// the newest down.
//
//   1 none ──Begin──▶ 2 choosing ──Next──▶ 3 asked: ReturnTo was sent to every holder of one state
//      ▲                 ▲  │                │  all have answered, are gone, or are late (and are given up)
//      │                 └──┼── none has it ─┤
//      └── Take ── 4 settled ◀── one has it ─┘
//                       (also when no state is left: then it is the checkpoint)
//
// Every state is tried once and for a bounded time, so this part terminates.
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
  // The time in which a worker must verify a large copy and load it onto its device.
  static constexpr absl::Duration kPatience = absl::Seconds(20);
  // The time in which a worker that lost its session must come back; its Hello says what it took up meanwhile.
  static constexpr absl::Duration kComesBack = absl::Seconds(3);

  // A copy that may be used: its holder is at rest and is not in the minority, and all members had this state.
  struct Offer {
    Incarnation holder;
    KeptState state;
    absl::Duration trained_for;  // of the job, at that state
  };
  struct Order {
    KeptState state;
    std::vector<Incarnation> holders;
  };
  // The state from which the job continues.
  struct Outcome {
    WentBack told;
    absl::Duration trained_for;
  };

  // The repair is recorded. `to_checkpoint`: the outcome if none of the offers can be used.
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
  // The newest step that is being tried or is still to be tried.
  std::optional<uint64_t> Newest() const {
    if (asked_.has_value()) return asked_->position.step;
    if (choices_.empty()) return std::nullopt;
    return choices_.rbegin()->first.first.step;
  }

  // The next state to try: the order goes to every holder for which `is_there` is true; each must answer by `limit`.
  // Nullopt if answers are awaited or the outcome is known.
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
  // A holder answered. Returns whether its answer was awaited.
  bool Answered(const Incarnation& holder, const KeptState& state, bool done) {
    if (!IsAsked(state) || awaited_.erase(holder) == 0) return false;
    returned_ = returned_ || done;
    return true;
  }
  // A holder said Hello at rest, with the state of `took_up` or with none: that is its answer.
  void CameBack(const Incarnation& holder, const std::optional<Position>& took_up) {
    if (awaited_.count(holder) == 0) return;
    Answered(holder, *asked_, took_up == asked_->position);
  }
  // A holder lost its session.
  void Lost(const Incarnation& holder, absl::Time now) {
    const auto found = awaited_.find(holder);
    if (found != awaited_.end()) found->second = std::min(found->second, now + kComesBack);
  }
  // Returns the holders whose limit has passed; they are no longer awaited.
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
  // Falls back to the checkpoint, unless a copy was taken up already.
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

  // The outcome, which ends this part; nullopt if there is none yet, and Next names the state to try.
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
    std::map<Incarnation, KeptState> holders;  // the same state may be known under several lineages
  };

  bool IsAsked(const KeptState& state) const {
    return asked_.has_value() && asked_->position == state.position && asked_->digest == state.digest;
  }

  bool pending_ = false;
  Outcome outcome_;
  std::map<std::pair<Position, Digest>, Choice> choices_;
  std::optional<KeptState> asked_;
  absl::Duration trained_for_;
  std::map<Incarnation, absl::Time> awaited_;  // each with its limit
  bool returned_ = false;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_AUDIT_RETURN_H_
