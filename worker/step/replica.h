// One worker's replica of a job: the device, the state, the plans bound to it, the data and the step runner, made from
// the metagraph and the job. Everything that can fail for a reason that is knowable fails here, before the first step.
//
// Threading: owned by the engine thread, which also makes it; Cancel and CancelSample may be called from any thread.
#ifndef LOCKSTEP_WORKER_STEP_REPLICA_H_
#define LOCKSTEP_WORKER_STEP_REPLICA_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/job/job.h"
#include "common/protocol/messages.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "common/sync/pulse.h"
#include "worker/data/data_source.h"
#include "worker/profile/profiler.h"
#include "worker/step/replica_plans.h"
#include "worker/step/replica_state.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {

// A failure to make a replica, and what kind of problem it is for the chief.
struct ReplicaProblem {
  PrepareProblem problem = PrepareProblem::kOther;
  absl::Status status;
};

class Replica {
 public:
  // Waits for what is queued.
  ~Replica();

  // Makes a replica. With `kernel_plan` empty the kernels are chosen here and the probe is recorded, else both must
  // agree with the plan (rules 29 to 31). Blocks, and advances `pulse` (may be null; it outlives the replica); returns
  // null and fills `problem` when it cannot be done. `profiler` (outlives the replica) watches all that is made here;
  // null: nothing is watched. `where`: what this worker was told to compute on.
  static std::unique_ptr<Replica> Make(const std::string& metagraph_bytes, const JobSpec& job,
                                       const std::string& kernel_plan, Pulse* pulse, ReplicaProblem& problem,
                                       Profiler* profiler = nullptr, const device::WorkerDevice& where = {});

  ReplicaState& state() { return *state_; }
  // REQUIRES: not released().
  StepRunner& runner() { return *runner_; }
  // Where time went since it was made.
  StepTimes times() const;

  // Gives back all device memory but the state's, and waits for what is queued. What was chosen, drafted and counted
  // stays, and so do the state, its copies and snapshots. True when there was something to give: the device has memory
  // of its own, the job lets it grow (a share that the user has set aside is kept), and nothing was given yet.
  bool ReleaseMemory();
  bool released() const { return runner_ == nullptr; }
  // Takes it again: steps go on as if nothing had been. Blocks. ResourceExhausted with sizes where it is gone; then
  // nothing was taken.
  absl::Status TakeMemory();
  // Bytes that ReleaseMemory gives back, as they were forecast.
  int64_t releasable_bytes() const { return releasable_bytes_; }

  // What the model writes by the state as it stands. Blocks; Cancelled after CancelSample(true). REQUIRES: the job says
  // `eval.sample`.
  absl::StatusOr<std::string> WriteSample() {
    LS_RETURN_IF_ERROR(state_->BeginRead(plans_.text_plan->stream()));
    return WriteText(*plans_.text_plan, plans_.text);
  }
  // While true, passes of steps and slices end early. Thread-safe.
  void Cancel(bool cancel);
  // While true, WriteSample ends early. Thread-safe.
  void CancelSample(bool cancel) {
    if (plans_.text_plan != nullptr) plans_.text_plan->Cancel(cancel);
  }

  // What it computes on: for people, and why that.
  std::string device_text() const;
  // Which GPU of this machine it is on; nothing on other devices.
  std::optional<int> gpu() const {
    return plans_.chosen.kind == device::DeviceKind::kCuda ? std::optional(plans_.chosen.gpu.ordinal) : std::nullopt;
  }
  const std::string& device_reason() const { return plans_.chosen.reason; }
  // The kernel plan with the recorded probe, and its hash.
  const std::string& kernel_plan() const { return kernel_plan_; }
  const std::string& plan_hash() const { return plan_hash_; }
  int64_t train_samples() const { return train_->num_samples(); }
  // Over the job's training data; that of evaluations is checked against the job's own hash.
  const std::string& data_digest() const { return data_digest_; }
  // On which a digest of the state may be made while nothing else computes: the job's, which are few where a GPU does
  // the work.
  int digest_threads() const { return gpu().has_value() ? std::max(digest_threads_, 4) : digest_threads_; }
  // Copies of audited states for which memory suffices; beside the replica.
  int kept_copies() const { return kept_copies_; }
  // TrainingPolicy::settings of the job that it was made from.
  const std::string& settings() const { return settings_; }
  // The longest that a node ran in the warm-up.
  absl::Duration longest_node() const { return longest_node_; }

 private:
  Replica() = default;
  // Makes the runner and shows it to other threads.
  absl::Status MakeRunner(StepConfig config);

  std::unique_ptr<DataSource> train_;
  std::unique_ptr<Augmentation> augmentation_;  // of its samples; null: they stay as they are
  std::unique_ptr<DataSource> eval_;
  ReplicaPlans plans_;  // with the device, which outlives the state
  std::unique_ptr<ReplicaState> state_;
  std::unique_ptr<StepRunner> runner_;           // null: released
  std::unique_ptr<StepConfig> config_;           // of the next runner, while released
  StepTimes times_before_;                       // of the runners before
  std::map<std::string, std::byte*> variables_;  // as plans are bound
  std::map<std::string, std::byte*> evaluated_;  // those that the evaluation reads
  bool grows_ = false;                           // the job's `resources.gpu_memory`
  int64_t releasable_bytes_ = 0;
  int kept_copies_ = 0;
  int digest_threads_ = 1;
  Pulse* pulse_ = nullptr;
  Mutex mutex_;
  StepRunner* cancellable_ GUARDED_BY(mutex_) = nullptr;  // runner_, for other threads
  bool cancelled_ GUARDED_BY(mutex_) = false;
  std::string kernel_plan_;
  std::string plan_hash_;
  std::string data_digest_;
  std::string settings_;
  absl::Duration longest_node_;

  friend class ReplicaBuilder;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_REPLICA_H_
