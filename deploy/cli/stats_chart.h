// Draws a job's history on a terminal, over time from left to right: its speed, the time of a step, how much of it
// workers waited for each other, and which workers left.
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

// The totals and means of one column of the picture.
struct StatsColumn {
  double samples_per_second = 0;  // of all workers together
  double step_ms = 0;             // the mean of a step; 0: there was none
  double compute_ms = 0;          // the part that was computed
  double waiting = 0;             // share of that time that was spent in all-reduce, from 0 to 1
  int64_t joins = 0;
  int64_t preemptions = 0;
  int64_t losses = 0;
  int64_t crashes = 0;
};

// Divides the history from `begin` to `end` into `columns` columns of equal length. A line that spans several columns
// counts in each by its share of time; events of a worker count in the last of them. REQUIRES: columns > 0, begin <
// end.
std::vector<StatsColumn> Columns(const std::vector<WorkerInterval>& history, absl::Time begin, absl::Time end,
                                 size_t columns);

// The picture: lines, each with its newline, at most `width` columns wide (at least 40), with a table of the workers if
// there are several. `zone`: the time zone of its labels. REQUIRES: `history` is not empty and sorted by time.
std::string StatsChart(const std::vector<WorkerInterval>& history, size_t width, absl::TimeZone zone);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_STATS_CHART_H_
