// Which members are stragglers: whose own computing takes much longer per step than that of the others, who all wait
// for it. Time that a member waits for its peers does not count.
//
//   1 as the others ──kSlow times the median or more──▶ 2 straggler ──less than kRecovered times──▶ 1
//
// Members are compared once each of them has counted a window: kWindow steps and kLeast. Who holds more logical shards
// than others computes longer by design: a straggler is slow per step and per sample. A generation shares the steps out
// anew, so that windows begin anew with it; marks stay. A worker that is no member stays as it was last seen.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_STRAGGLERS_H_
#define LOCKSTEP_CHIEF_CORE_STRAGGLERS_H_

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/limits.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

class Stragglers {
 public:
  static constexpr double kWindow = 20;                       // steps
  static constexpr absl::Duration kLeast = absl::Seconds(5);  // a hiccup of a moment makes no straggler
  static constexpr double kSlow = 1.5;                        // times the median
  static constexpr double kRecovered = 1.25;                  // in between everything stays as it is

  // Of one process since it began.
  struct Counters {
    double steps = 0;
    double samples = 0;
    double compute_seconds = 0;
  };
  // A worker that became a straggler, or is none any more.
  struct Change {
    Incarnation worker;
    bool straggles = false;
    double slowdown = 0;
  };

  // A member of `generation`, which has `members` of them, told its counters at `now`. Returns what changes by that.
  // What is not finite or goes back begins a new window.
  std::vector<Change> Told(absl::Time now, const Generation& generation, size_t members, const Incarnation& member,
                           const Counters& counters);
  bool Straggles(const Incarnation& worker) const {
    const auto found = seen_.find(worker);
    return found != seen_.end() && found->second.straggles;
  }
  // Its own time per step over the median of the members, as last compared; 0: not known.
  double Slowdown(const Incarnation& worker) const {
    const auto found = seen_.find(worker);
    return found == seen_.end() ? 0 : found->second.slowdown;
  }
  bool Any() const;
  // True the first time that `spare` is to take the place of `straggler`: what did not help once is not tried again.
  bool Try(const Incarnation& straggler, const Incarnation& spare) {
    return tried_.size() < kMaxWorkers && tried_.insert({straggler, spare}).second;
  }
  void Forget(const Incarnation& gone);

 private:
  struct Window {
    absl::Time since;
    Counters begin;
  };
  struct Speed {
    double per_step = 0;
    double per_sample = 0;
  };
  struct Seen {
    bool straggles = false;
    double slowdown = 0;
  };

  std::vector<Change> Compare();

  Generation generation_;
  std::map<Incarnation, Window> windows_;  // of the generation's members
  std::map<Incarnation, Speed> speeds_;    // of windows that ended since the last comparison
  std::map<Incarnation, Seen> seen_;
  std::set<std::pair<Incarnation, Incarnation>> tried_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_STRAGGLERS_H_
