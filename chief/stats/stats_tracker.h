// Counts what every worker did, for worker_stats.json (protos/stats.proto): totals over the whole job, across restarts
// of the chief, and recent rates. No I/O and no clock inside: time is an argument.
//
// Threading: thread-compatible; owned by JobRecords.
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

// Steps that a worker applied between two reports, and the sums of their times.
struct StepTimings {
  int64_t steps = 0;
  absl::Duration total;  // from one step to the next
  absl::Duration compute;
  absl::Duration all_reduce;
  absl::Duration data;
  int64_t samples = 0;        // that this worker computed
  int64_t bytes_reduced = 0;  // that it sent
};

// Mean times per step over the reports of the last 10 s, or the last report if it is older; zeros if nothing is known.
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

  // Continues the totals of an earlier chief. All workers count as disconnected until they join.
  void Continue(const WorkerStatsFile& before);

  // A worker joined. Returns true if it is another process than before, whose counters begin at zero.
  bool Joined(absl::Time now, absl::string_view worker, absl::string_view host, absl::string_view device,
              absl::string_view incarnation);
  void Departed(absl::string_view worker, Departure how);
  // Adds to a worker's totals; an unknown worker is created. Does nothing if `timings` has no steps.
  void Stepped(absl::Time now, absl::string_view worker, const StepTimings& timings);
  // Sets the quantiles of its newest steps that a worker measured.
  void SetStepQuantiles(absl::string_view worker, double p50_ms, double p95_ms);
  // Adds the time that a worker spent on a snapshot and the bytes of state that it sent.
  void Uploaded(absl::string_view worker, absl::Duration spent, int64_t bytes);
  // The worker's state was in the minority; its process ended and is started again.
  void DigestMismatch(absl::string_view worker);
  // Replicas differed: the job went back according to `repair`, under this lineage.
  void WentBack(absl::string_view lineage, const RepairStats& repair);
  // The newest checkpoint, after newer ones were set aside.
  void CommittedIs(int64_t step);
  // How a worker that takes part compares with the others (protos/stats.proto).
  void Compared(absl::string_view worker, bool straggler, double slowdown);
  // Sets the hosts that failed so far, sorted by name.
  void SetHosts(std::vector<HostStats> hosts);

  void GenerationFormed();
  void Agreed(int64_t step);
  void Committed(int64_t step);
  // Sets the numbers of saves that failed, and of saves that were due and not begun, under this chief.
  void SetSaves(int64_t failed, int64_t skipped);
  void SetTrained(absl::Duration trained);
  void SetHooks(const HookMarks& marks) { *totals_.mutable_job()->mutable_hooks() = marks; }
  // Sets where the time went, as of `written_ms` (since 1970).
  void SetGoodput(const Goodput& goodput, int64_t written_ms);
  void SetEndStep(int64_t step);
  // The chief ends with `exit_code`, for `reason`; `completed`: the job is done.
  void Ended(int32_t exit_code, absl::string_view reason, bool completed);

  // The counts of the whole job, without rates, which Snapshot computes.
  const JobStats& job() const { return totals_.job(); }
  // Oldest first.
  const google::protobuf::RepeatedPtrField<RepairStats>& repairs() const { return totals_.repairs(); }

  // The content of the file. Rates count what connected workers reported in the last 10 s, or since they joined.
  WorkerStatsFile Snapshot(absl::Time now) const;
  // The entry of one worker in Snapshot; empty for an unknown worker.
  lockstep::WorkerStats StatsOf(absl::Time now, absl::string_view worker) const;
  StepMeans MeansOf(absl::Time now, absl::string_view worker) const;

 private:
  struct Recent {
    absl::Time when;
    StepTimings timings;
  };
  struct Worker {
    lockstep::WorkerStats stats;
    std::deque<Recent> recent;                  // of the last 10 s, and always the newest one
    absl::Time since = absl::InfiniteFuture();  // when it joined
  };

  Worker& Find(absl::string_view worker);
  static lockstep::WorkerStats StatsOf(absl::Time now, const Worker& worker);

  WorkerStatsFile totals_;     // without workers
  int64_t failed_before_ = 0;  // failed saves of earlier chiefs
  int64_t skipped_before_ = 0;
  std::map<std::string, Worker, std::less<>> workers_;
};

// Encodes the file, and parses it. DataLoss: it is malformed. `file`: its name, for messages.
std::string EncodeWorkerStats(const WorkerStatsFile& stats);
absl::StatusOr<WorkerStatsFile> ParseWorkerStats(absl::string_view json, absl::string_view file);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STATS_STATS_TRACKER_H_
