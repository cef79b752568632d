// Records what every worker did in each interval, for the job's history (docs/formats/history.md): the differences
// between successive totals of StatsTracker. No I/O and no clock inside.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_STATS_STATS_HISTORY_H_
#define LOCKSTEP_CHIEF_STATS_STATS_HISTORY_H_

#include <map>
#include <string>

#include "absl/time/time.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

class StatsHistory {
 public:
  static constexpr absl::Duration kInterval = absl::Minutes(1);
  // With many workers the interval is longer, so that there are at most this many lines per minute on average.
  static constexpr int kLinesPerMinute = 1000;

  // Starts the first interval at `now`, of a monotonic clock, from these totals.
  void StartFrom(absl::Time now, const WorkerStatsFile& totals);

  // Whether the present interval has ended, in a job with `workers` workers.
  bool Due(absl::Time now, int workers) const;

  // Ends the interval: returns a JSON line for each worker that did something in it or to which something happened.
  // `wall`: the time shown to people.
  std::string Take(absl::Time now, absl::Time wall, const WorkerStatsFile& totals);

 private:
  absl::Time begin_ = absl::InfinitePast();
  std::map<std::string, WorkerStats> before_;  // by worker
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STATS_STATS_HISTORY_H_
