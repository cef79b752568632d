// Finds stragglers: members whose own computing takes much longer per step than that of the others, who all wait for
// it. The time in which a member waits for its peers does not count.
//
//   1 as the others ──kSlow times the median or more──▶ 2 straggler ──less than kRecovered times──▶ 1
//
// Members are compared once each has completed a window of at least kWindow steps and kLeast. A member with more
// logical shards computes longer by design, so a straggler must be slow both per step and per sample. A new generation
// distributes the shards anew, so windows begin anew with it; marks stay. A worker that is not a member keeps its mark.
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
  static constexpr absl::Duration kLeast = absl::Seconds(5);  // a short hiccup makes no straggler
  static constexpr double kSlow = 1.5;                        // times the median
  static constexpr double kRecovered = 1.25;                  // between the two limits a mark stays as it is

  // Totals of one process since its start.
  struct Counters {
    double steps = 0;
    double samples = 0;
    double compute_seconds = 0;
  };
  // A worker that became a straggler or stopped being one.
  struct Change {
    Incarnation worker;
    bool straggles = false;
    double slowdown = 0;
  };

  // A member of `generation`, which has `members` members, reported its counters at `now`. Returns the marks that
  // change. Counters that are not finite or go back begin a new window.
  std::vector<Change> Told(absl::Time now, const Generation& generation, size_t members, const Incarnation& member,
                           const Counters& counters);
  bool Straggles(const Incarnation& worker) const {
    const auto found = seen_.find(worker);
    return found != seen_.end() && found->second.straggles;
  }
  // The smaller of its time per step and per sample, each relative to the median of the members; 0: not known.
  double Slowdown(const Incarnation& worker) const {
    const auto found = seen_.find(worker);
    return found == seen_.end() ? 0 : found->second.slowdown;
  }
  bool Any() const;
  // Returns true the first time that `spare` is to take the place of `straggler`: a swap that did not help is not
  // repeated.
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
