#include "chief/stats/stats_history.h"

#include <algorithm>
#include <cmath>

#include "chief/stats/line_files.h"

namespace lockstep::chief {
namespace {

// A microsecond is enough, and all digits of a difference are long.
double Short(double seconds) { return std::round(seconds * 1e6) / 1e6; }

// The work between two totals. If totals shrank, the worker was replaced by another one, and all of `now` is new.
WorkerInterval Between(const WorkerStats& before, const WorkerStats& now) {
  const WorkerStats none;
  const WorkerStats& from = now.steps() < before.steps() || now.joins() < before.joins() ? none : before;
  WorkerInterval line;
  line.set_worker(now.worker());
  line.set_steps(now.steps() - from.steps());
  line.set_samples(now.samples() - from.samples());
  line.set_step_seconds(Short(now.step_seconds() - from.step_seconds()));
  line.set_compute_seconds(Short(now.compute_seconds() - from.compute_seconds()));
  line.set_all_reduce_seconds(Short(now.all_reduce_seconds() - from.all_reduce_seconds()));
  line.set_data_seconds(Short(now.data_seconds() - from.data_seconds()));
  line.set_checkpoint_seconds(Short(now.checkpoint_seconds() - from.checkpoint_seconds()));
  line.set_joins(now.joins() - from.joins());
  line.set_preemptions(now.preemptions() - from.preemptions());
  line.set_losses(now.losses() - from.losses());
  line.set_crashes(now.crashes() - from.crashes());
  return line;
}

bool IsEmpty(const WorkerInterval& line) {
  return line.steps() == 0 && line.joins() == 0 && line.preemptions() == 0 && line.losses() == 0 && line.crashes() == 0;
}

}  // namespace

void StatsHistory::StartFrom(absl::Time now, const WorkerStatsFile& totals) {
  begin_ = now;
  before_.clear();
  for (const WorkerStats& worker : totals.workers()) before_[worker.worker()] = worker;
}

bool StatsHistory::Due(absl::Time now, int workers) const {
  const absl::Duration for_lines = absl::Minutes(1) * workers / kLinesPerMinute;
  return now - begin_ >= std::max(kInterval, for_lines);
}

std::string StatsHistory::Take(absl::Time now, absl::Time wall, const WorkerStatsFile& totals) {
  std::string lines;
  for (const WorkerStats& worker : totals.workers()) {
    WorkerInterval line = Between(before_[worker.worker()], worker);
    if (IsEmpty(line)) continue;
    line.set_at_ms(absl::ToUnixMillis(wall));
    line.set_seconds(Short(absl::ToDoubleSeconds(now - begin_)));
    line.set_job_step(totals.job().step());
    lines += JsonLine(line);
  }
  StartFrom(now, totals);
  return lines;
}

}  // namespace lockstep::chief
