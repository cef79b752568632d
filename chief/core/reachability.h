// Rule 11: which pairs of workers have reached each other. A pair shares a generation only after a test connection
// between them succeeded; one that failed waits for the next test.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_REACHABILITY_H_
#define LOCKSTEP_CHIEF_CORE_REACHABILITY_H_

#include <algorithm>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

class Reachability {
 public:
  static constexpr absl::Duration kRetest = absl::Seconds(1);
  static constexpr absl::Duration kPatience = absl::Seconds(10);  // with a test that was asked for

  // May the two share a generation?
  bool Reached(const Incarnation& a, const Incarnation& b) const {
    const auto it = pairs_.find(Key(a, b));
    return it != pairs_.end() && it->second.reached;
  }
  // Is it time to ask for a test of this pair?
  bool TestDue(const Incarnation& a, const Incarnation& b, absl::Time now) const {
    const auto it = pairs_.find(Key(a, b));
    return it == pairs_.end() || (!it->second.reached && now >= it->second.next_test);
  }
  void Asked(const Incarnation& a, const Incarnation& b, absl::Time now) {
    pairs_[Key(a, b)] = {false, now + kPatience};
  }
  void Succeeded(const Incarnation& a, const Incarnation& b) { pairs_[Key(a, b)] = {true, absl::InfinitePast()}; }
  void Failed(const Incarnation& a, const Incarnation& b, absl::Time now) {
    pairs_[Key(a, b)] = {false, now + kRetest};
  }
  void Forget(const Incarnation& gone) {
    std::erase_if(pairs_, [&](const auto& entry) { return entry.first.first == gone || entry.first.second == gone; });
  }

 private:
  struct Pair {
    bool reached = false;
    absl::Time next_test;
  };
  static std::pair<Incarnation, Incarnation> Key(const Incarnation& a, const Incarnation& b) {
    return {std::min(a, b), std::max(a, b)};
  }
  std::map<std::pair<Incarnation, Incarnation>, Pair> pairs_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_REACHABILITY_H_
