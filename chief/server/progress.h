// Shows people and programs a running job: a progress line, rewritten on a terminal or else printed from time to time,
// a line per save and per evaluation, and the closing lines. Also computes the numbers that `status` shows.
//
// Threading: thread-compatible; ChiefLoop owns the only instance.
#ifndef LOCKSTEP_CHIEF_SERVER_PROGRESS_H_
#define LOCKSTEP_CHIEF_SERVER_PROGRESS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "chief/server/evaluation_board.h"
#include "chief/server/live_line.h"
#include "common/log/log.h"
#include "common/log/output.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

// The best checkpoint of a job that keeps it.
struct BestResult {
  std::string checkpoint;  // its path; empty: none is kept
  uint64_t step = 0;
  double value = 0;  // of its evaluation
};

class Progress {
 public:
  struct Options {
    uint64_t end_step = 0;  // the largest value: a clock ends the job
    uint64_t global_batch = 1;
    uint64_t epoch_samples = 1;
    double state_mib = 0;
    EvaluationRule evaluation;
    EvaluationLedger evaluated;  // the ledger up to the step from which the job continues
    bool sequences = false;      // labels are sequences
    bool live = false;           // there is a terminal whose last line can be rewritten
    std::function<void(const LogEvent&)> tell;
    std::function<void(OutputQueue::LiveLine)> show_live;
  };

  explicit Progress(Options options)
      : options_(std::move(options)), board_(options_.evaluation, options_.evaluated, options_.sequences) {}

  // The job continues from this step.
  void StartAt(uint64_t step) { step_ = step; }
  void SetWorkers(size_t workers) { workers_ = workers; }
  void On(absl::Time now, const StepsAgreed& action);
  void On(const EvaluationDone& action);
  void On(const RecordSample& action);
  void On(const StoreManifest& action) { board_.Follow(action.ledger); }
  void On(const AmendManifest& action) { board_.Follow(action.ledger); }
  void On(const WorkerCounters& action);
  // Replicas differed: what was shown of later steps no longer counts.
  void On(const WentBack& action);
  void SaveOpened(absl::Time now, const SnapshotId& snapshot);
  void SavePublished(absl::Time now, const SnapshotId& snapshot);

  // Prints the progress line if one is due.
  void Tick(absl::Time now);
  // Removes the live line from the terminal.
  void Hide();
  // Prints the closing lines of a job that is done, or that was stopped and can be resumed. `checkpoint`: the path of
  // its last checkpoint.
  void Close(const std::string& checkpoint, const BestResult& best, bool done);

  double loss() const { return loss_; }
  double samples_per_second(absl::Time now) const;
  double eta_seconds(absl::Time now) const;
  const EvaluationBoard& board() const { return board_; }

 private:
  struct Sample {
    absl::Time when;
    uint64_t step = 0;
  };

  void ShowRate(const StepRecord& record);
  std::vector<LinePart> Parts(absl::Time now) const;
  LogEvent ProgressEvent(absl::Time now) const;
  double CheckpointSeconds() const;

  const Options options_;
  uint64_t step_ = 0;
  double loss_ = 0;
  std::optional<double> learning_rate_;  // of the newest step
  size_t workers_ = 0;
  std::deque<Sample> recent_;
  absl::Time next_line_ = absl::InfinitePast();
  bool live_shown_ = false;
  EvaluationBoard board_;
  std::map<SnapshotId, absl::Time> opened_;
  std::map<std::string, double> checkpoint_seconds_;  // by worker
  double checkpoint_seconds_before_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_PROGRESS_H_
