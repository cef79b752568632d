// What every worker did, stretch by stretch, for the job's history (docs/formats/history.md): the difference between
// totals of StatsTracker. No I/O and no clock inside.
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
  // Of a job with many workers an interval is longer: so many lines a minute at most, on average.
  static constexpr int kLinesPerMinute = 1000;

  // Lines count from these totals on, and from `now`, of a monotonic clock.
  void StartFrom(absl::Time now, const WorkerStatsFile& totals);

  // Whether the present interval of a job with so many workers has ended.
  bool Due(absl::Time now, int workers) const;

  // A line of JSON, with its end, for each worker that did something since the last call or to which something
  // happened. `wall`: the time that people are told.
  std::string Take(absl::Time now, absl::Time wall, const WorkerStatsFile& totals);

 private:
  absl::Time begin_ = absl::InfinitePast();
  std::map<std::string, WorkerStats> before_;  // by worker
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STATS_STATS_HISTORY_H_
