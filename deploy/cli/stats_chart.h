// A job's history as a picture for a terminal: how fast it was, what a step took, how much of it the workers waited for
// each other, and who left, over time from left to right.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_STATS_CHART_H_
#define LOCKSTEP_DEPLOY_CLI_STATS_CHART_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "protos/stats.pb.h"

namespace lockstep::cli {

// What was done in one column of the picture.
struct StatsColumn {
  double samples_per_second = 0;  // of all workers together
  double step_ms = 0;             // the mean of a step; 0: there was none
  double compute_ms = 0;          // of it, what was computed
  double waiting = 0;             // share of that time that was spent in all-reduce, from 0 to 1
  int64_t joins = 0;
  int64_t preemptions = 0;
  int64_t losses = 0;
  int64_t crashes = 0;
};

// The history from `begin` to `end` in so many columns of equal length. A line that reaches over several columns counts
// in each by its share of time; what happened to a worker counts in the last of them. REQUIRES: columns > 0, begin <
// end.
std::vector<StatsColumn> Columns(const std::vector<WorkerInterval>& history, absl::Time begin, absl::Time end,
                                 size_t columns);

// The picture, lines with their ends, at most `width` columns wide (40 at least), with a table of the workers when
// there are several. `zone`: of the times in it. REQUIRES: `history` is not empty and in the order of its time.
std::string StatsChart(const std::vector<WorkerInterval>& history, size_t width, absl::TimeZone zone);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATS_CHART_H_
