// The records that a chief keeps for people: statistics of workers and their history, TensorBoard events, the timeline,
// and where the time went. It receives what the chief hears and decides, and returns the bytes to write
// (record_writer.h). No I/O and no clock inside: time is an argument.
//
// Threading: thread-compatible; owned by ChiefLoop. Never blocks.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_RECORDS_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_RECORDS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "chief/core/coordinator_view.h"
#include "chief/events/event_log.h"
#include "chief/events/training_series.h"
#include "chief/stats/stats_history.h"
#include "chief/stats/stats_tracker.h"
#include "chief/timeline/goodput_clock.h"
#include "chief/timeline/timeline_recorder.h"
#include "common/protocol/ids.h"
#include "protos/observation.pb.h"

namespace lockstep::chief {

// Bytes to write.
struct RecordBatch {
  std::string stats;   // the whole statistics file
  std::string events;  // the following three: new records since the last batch
  std::string history;
  std::string timeline;
};

class JobRecords {
 public:
  // One instant on both clocks.
  struct Instant {
    absl::Time steady;
    absl::Time wall;  // shown to people
  };
  struct Options {
    std::string job;
    std::string lineage;
    Term term = 0;
    int64_t step = 0;        // the step from which the job continues
    std::string checkpoint;  // the path of the checkpoint of `step`, for people
    int64_t end_step = 0;
    int64_t global_batch = 1;
    std::optional<WorkerStatsFile> before;  // the statistics of an earlier chief
  };

  JobRecords(Instant at, const Options& options);

  // The core decided these actions. Called before they are performed.
  void Saw(Instant at, const std::vector<Action>& actions, TimelineRecorder::Present present);
  // `generation`, which has `members` members, agreed on steps.
  void Agreed(Instant at, const StepsAgreed& action, const Generation& generation, size_t members);
  void Evaluated(Instant at, int64_t step, const std::vector<NamedValue>& metrics);
  void Sampled(Instant at, int64_t step, absl::string_view text);
  void Reported(Instant at, const WorkerCounters& action);
  // A worker changed; `host` and `device` are of a worker that joined.
  void Changed(Instant at, const WorkerChanged& action, absl::string_view host, absl::string_view device);
  // A hook observed the state after `step`. The observation is recorded behind the loss of that step, once it is
  // agreed. If more than 256 wait, the oldest is dropped. Notable lines are logged.
  void Observed(Instant at, const std::string& hook, int64_t step, const lockstep::Observed& observed);
  void WentBack(Instant at, const lockstep::chief::WentBack& action);
  // A save is about to be committed; the job had trained for `trained`.
  void Trained(absl::Duration trained) { stats_.SetTrained(trained); }
  void Published(Instant at, int64_t step, const std::string& path);
  // The newest checkpoint, after newer ones were set aside.
  void CommittedIs(int64_t step) { stats_.CommittedIs(step); }
  void Warned(Instant at, absl::string_view text) { timeline_.Warned(at.wall, text); }
  void SetHooks(const HookMarks& marks) { stats_.SetHooks(marks); }
  // `completed`: the job is done.
  void Ended(Instant at, const Exit& exit, bool completed);

  // Takes in what the core reports of its workers, hosts and saves.
  void See(const CoordinatorView& view);
  // The current statistics, of a core with this view; EncodedStats returns them as the bytes of the file.
  WorkerStatsFile Stats(Instant at, const CoordinatorView& view);
  std::string EncodedStats(Instant at, const CoordinatorView& view) { return EncodeWorkerStats(Stats(at, view)); }
  // Everything to write now. The history has records only once in a while.
  RecordBatch Take(Instant at, const CoordinatorView& view) { return TakeAll(at, view, /*at_end=*/false); }
  // Everything to write at the end, including records that wait for their time: no more steps will be agreed.
  // `members`: the number of members.
  RecordBatch TakeLast(Instant at, const CoordinatorView& view, size_t members);
  std::string TakeEvents() { return events_.Take(); }
  std::string TakeTimeline() { return timeline_.Take(); }

  const StatsTracker& stats() const { return stats_; }
  Goodput goodput(absl::Time now) const { return goodput_.Totals(now); }
  // The newest step whose loss this chief recorded; 0: none.
  int64_t told_step() const { return told_step_; }

 private:
  // The counters of a worker's last report.
  struct Report {
    absl::Time when;
    std::map<std::string, double> values;
  };
  struct Observation {
    std::string hook;
    int64_t step = 0;
    lockstep::Observed observed;
  };

  // Records the series that are due behind the loss of the newest step, or `at_end`.
  void TellSeries(Instant at, size_t members, bool at_end);
  void TellObservations(Instant at);
  RecordBatch TakeAll(Instant at, const CoordinatorView& view, bool at_end);

  const Term term_;
  StatsTracker stats_;
  StatsHistory history_;
  EventLog events_;
  TrainingSeries series_;
  TimelineRecorder timeline_;
  GoodputClock goodput_;
  std::map<std::string, Report> reports_;  // by worker
  std::deque<Observation> observations_;   // of steps whose loss is not recorded yet
  Generation generation_;                  // that agreed on the newest steps
  int64_t told_step_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_RECORDS_H_
