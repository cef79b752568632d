// Rule 11: which pairs of workers have reached each other, and what broke their generations. A pair shares a generation
// only after a test connection between them succeeded.
//
//   1 untested ──Succeeded──▶ 2 reached ──Suspect──▶ 3 in doubt ──Succeeded──▶ 2
//        └──────Failed──────▶ 4 apart ◀──Failed, or suspected again without a generation between──┘
//
//   1, 3  are tested at once; a generation waits a moment for the answer of 3
//   4     is tested again after a pause: a second, or longer each time that a generation failed to form for it
// A worker that names itself as the cause is apart from everybody, with the same pauses.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_REACHABILITY_H_
#define LOCKSTEP_CHIEF_CORE_REACHABILITY_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

class Reachability {
 public:
  static constexpr absl::Duration kRetest = absl::Seconds(1);
  static constexpr absl::Duration kLongestPause = absl::Minutes(1);
  static constexpr absl::Duration kPatience = absl::Seconds(10);  // with a test that was asked for
  static constexpr absl::Duration kDoubt = absl::Seconds(5);      // how long a generation waits for a test
  static constexpr absl::Duration kSayEvery = absl::Minutes(1);   // that a pair is apart

  // May the two share a generation?
  bool Reached(const Incarnation& a, const Incarnation& b) const { return StateOf(a, b) == State::kReached; }
  // Has it been seen that they cannot?
  bool Apart(const Incarnation& a, const Incarnation& b) const { return StateOf(a, b) == State::kApart; }
  // Will it be known in a moment?
  bool InDoubt(const Incarnation& a, const Incarnation& b, absl::Time now) const {
    const auto it = pairs_.find(Key(a, b));
    return it != pairs_.end() && it->second.state == State::kDoubted && now < it->second.doubted_until;
  }
  // False while the worker pauses for what it could not do itself.
  bool MayForm(const Incarnation& worker, absl::Time now) const {
    const auto it = alone_.find(worker);
    return it == alone_.end() || now >= it->second.until;
  }
  // Is it time to ask for a test of this pair?
  bool TestDue(const Incarnation& a, const Incarnation& b, absl::Time now) const {
    if (!MayForm(a, now) || !MayForm(b, now)) return false;
    const auto it = pairs_.find(Key(a, b));
    return it == pairs_.end() || (it->second.state != State::kReached && now >= it->second.next_test);
  }
  void Asked(const Incarnation& a, const Incarnation& b, absl::Time now) {
    Pair& pair = pairs_[Key(a, b)];
    pair.next_test = now + kPatience;
    if (pair.state != State::kReached) unsettled_.insert(Key(a, b));
  }
  void Succeeded(const Incarnation& a, const Incarnation& b) {
    Pair& pair = pairs_[Key(a, b)];
    pair.state = State::kReached;
    unsettled_.erase(Key(a, b));
    pair.say_again = absl::InfinitePast();
  }
  // True when people should hear of it: the first time, and now and then.
  bool Failed(const Incarnation& a, const Incarnation& b, absl::Time now) {
    Pair& pair = Unsettled(Key(a, b));
    pair.state = State::kApart;
    pair.next_test = now + kRetest;
    if (now < pair.say_again) return false;
    pair.say_again = now + kSayEvery;
    return true;
  }
  // They formed a generation, or step in one.
  void Formed(const Incarnation& a, const Incarnation& b) {
    pairs_[Key(a, b)] = Pair{State::kReached};
    unsettled_.erase(Key(a, b));
    alone_.erase(a);
    alone_.erase(b);
  }
  // A generation failed, nobody having died, and `a` names `b` as the cause.
  void Suspect(const Incarnation& a, const Incarnation& b, bool while_forming, absl::Time now) {
    Pair& pair = Unsettled(Key(a, b));
    pair.failures += while_forming ? 1 : 0;
    if (pair.failures >= 2) {
      // Tests succeed where generations do not: then the pause is what is left.
      pair.state = State::kApart;
      pair.next_test = now + Pause(pair.failures - 1);
    } else {
      pair.state = State::kDoubted;
      pair.next_test = now;
      pair.doubted_until = now + kDoubt;
    }
  }
  // A generation failed to form by what `worker` could not do itself.
  void SuspectItself(const Incarnation& worker, absl::Time now) {
    Alone& alone = alone_[worker];
    alone.until = now + Pause(++alone.failures);
    for (auto& [key, pair] : pairs_) {
      if (key.first != worker && key.second != worker) continue;
      pair.state = State::kApart;
      pair.next_test = alone.until;
      unsettled_.insert(key);
    }
  }
  void Forget(const Incarnation& gone) {
    const auto concerns = [&](const PairKey& key) { return key.first == gone || key.second == gone; };
    std::erase_if(pairs_, [&](const auto& entry) { return concerns(entry.first); });
    std::erase_if(unsettled_, concerns);
    alone_.erase(gone);
  }
  // The next instant at which time alone makes a test due, ends a doubt or ends a worker's pause.
  absl::Time NextDeadline(absl::Time now) const {
    absl::Time next = absl::InfiniteFuture();
    const auto at = [&](absl::Time when) {
      if (when > now) next = std::min(next, when);
    };
    for (const PairKey& key : unsettled_) {
      const Pair& pair = pairs_.at(key);
      at(pair.next_test);
      if (pair.state == State::kDoubted) at(pair.doubted_until);
    }
    for (const auto& [worker, alone] : alone_) at(alone.until);
    return next;
  }

  // The `nth` pause in a row.
  static absl::Duration Pause(uint32_t nth) {
    return std::min(kRetest * (int64_t{1} << std::min<uint32_t>(nth - 1, 10)), kLongestPause);
  }

 private:
  using PairKey = std::pair<Incarnation, Incarnation>;
  enum class State : uint8_t { kUntested, kReached, kDoubted, kApart };
  struct Pair {
    State state = State::kUntested;
    absl::Time next_test = absl::InfinitePast();
    absl::Time doubted_until = absl::InfinitePast();
    absl::Time say_again = absl::InfinitePast();
    uint32_t failures = 0;  // generations that failed to form for it, since one did form
  };
  struct Alone {
    uint32_t failures = 0;
    absl::Time until;
  };
  State StateOf(const Incarnation& a, const Incarnation& b) const {
    const auto it = pairs_.find(Key(a, b));
    return it == pairs_.end() ? State::kUntested : it->second.state;
  }
  static PairKey Key(const Incarnation& a, const Incarnation& b) { return {std::min(a, b), std::max(a, b)}; }
  Pair& Unsettled(const PairKey& key) {
    unsettled_.insert(key);
    return pairs_[key];
  }
  std::map<PairKey, Pair> pairs_;
  std::set<PairKey> unsettled_;  // of pairs_, those that have not reached each other
  std::map<Incarnation, Alone> alone_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_REACHABILITY_H_
