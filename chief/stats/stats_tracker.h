// Counts what every worker did, for worker_stats.json (protos/stats.proto): totals over the whole job, also over
// restarts of the chief, and rates over the recent past. No I/O and no clock inside: time is an argument.
//
// Threading: thread-compatible; the chief's shell owns the only instance.
#ifndef LOCKSTEP_CHIEF_STATS_STATS_TRACKER_H_
#define LOCKSTEP_CHIEF_STATS_STATS_TRACKER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

// Steps that a worker applied between two reports, and where their time went, all together.
struct StepTimings {
  int64_t steps = 0;
  absl::Duration total;  // from one step to the next
  absl::Duration compute;
  absl::Duration all_reduce;
  absl::Duration data;
  int64_t samples = 0;        // that this worker computed
  int64_t bytes_reduced = 0;  // that it sent
};

// Means of one step over what a worker reported in the last 10 s, or last; zeros while nothing is known.
struct StepMeans {
  double total_ms = 0;
  double compute_ms = 0;
  double all_reduce_ms = 0;
  double data_ms = 0;
};

enum class Departure {
  kPreempted,  // left on notice
  kLost,       // reset, silence or SIGKILL
  kCrashed,    // crash signal or a reported error
};

class StatsTracker {
 public:
  StatsTracker(std::string job_id, std::string lineage, int64_t term);

  // Continues the totals of an earlier chief. Nobody is connected until they join.
  void Continue(const WorkerStatsFile& before);

  // True when it is another process than the worker's last one, whose counters begin at zero.
  bool Joined(absl::Time now, absl::string_view worker, absl::string_view host, absl::string_view device,
              absl::string_view incarnation);
  void Departed(absl::string_view worker, Departure how);
  // An unknown worker is added. Does nothing without steps.
  void Stepped(absl::Time now, absl::string_view worker, const StepTimings& timings);
  // The quantiles of its newest steps that a worker measured. Replaces what was said before.
  void SetStepQuantiles(absl::string_view worker, double p50_ms, double p95_ms);
  // Time a worker spent on a snapshot, and bytes of state it sent.
  void Uploaded(absl::string_view worker, absl::Duration spent, int64_t bytes);
  // Its state differed from the majority's; it left, to be started again.
  void DigestMismatch(absl::string_view worker);
  // Replicas differed: the job went back as `repair` says, under this lineage.
  void WentBack(absl::string_view lineage, const RepairStats& repair);
  // The newest checkpoint, after newer ones were set aside.
  void CommittedIs(int64_t step);
  // How a worker that takes part compares with the others (protos/stats.proto).
  void Compared(absl::string_view worker, bool straggler, double slowdown);
  // The hosts that failed so far, sorted by name. Replaces what was said before.
  void SetHosts(std::vector<HostStats> hosts);

  void GenerationFormed();
  void Agreed(int64_t step);
  void Committed(int64_t step);
  // Attempts to save that failed, and saves that were due and not begun, of this chief. Replaces what was said before.
  void SetSaves(int64_t failed, int64_t skipped);
  void SetTrained(absl::Duration trained);
  void SetHooks(const HookMarks& marks) { *totals_.mutable_job()->mutable_hooks() = marks; }
  // Where time went, as of `written_ms` (since 1970).
  void SetGoodput(const Goodput& goodput, int64_t written_ms);
  void SetEndStep(int64_t step);
  // The chief ends with `exit_code` because of `reason`; `completed`: the job is done.
  void Ended(int32_t exit_code, absl::string_view reason, bool completed);

  // Counts of the whole job. Its rates are Snapshot's.
  const JobStats& job() const { return totals_.job(); }
  // Oldest first.
  const google::protobuf::RepeatedPtrField<RepairStats>& repairs() const { return totals_.repairs(); }

  // The file's content now. Rates count what connected workers reported in the last 10 s, or since they joined.
  WorkerStatsFile Snapshot(absl::Time now) const;
  // Of one worker, as Snapshot has it; nothing of an unknown one.
  lockstep::WorkerStats StatsOf(absl::Time now, absl::string_view worker) const;
  StepMeans MeansOf(absl::Time now, absl::string_view worker) const;

 private:
  struct Recent {
    absl::Time when;
    StepTimings timings;
  };
  struct Worker {
    lockstep::WorkerStats stats;
    std::deque<Recent> recent;                  // of the last 10 s; the newest stays
    absl::Time since = absl::InfiniteFuture();  // when it joined
  };

  Worker& Find(absl::string_view worker);
  static lockstep::WorkerStats StatsOf(absl::Time now, const Worker& worker);

  WorkerStatsFile totals_;     // without workers
  int64_t failed_before_ = 0;  // saves, of earlier chiefs
  int64_t skipped_before_ = 0;
  std::map<std::string, Worker, std::less<>> workers_;
};

// The file's bytes, and back. DataLoss when malformed.
std::string EncodeWorkerStats(const WorkerStatsFile& stats);
absl::StatusOr<WorkerStatsFile> ParseWorkerStats(absl::string_view json, absl::string_view file);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STATS_STATS_TRACKER_H_
