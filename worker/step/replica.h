// One worker's replica of a job: the device, the state, the plans bound to it, the data and the step runner, made from
// the metagraph and the job. Every error that can be found in advance is found here, before the first step.
//
// Threading: owned by the engine thread, which also makes it; Cancel and CancelSample are thread-safe.
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

// A failure to make a replica, with its kind for the chief.
struct ReplicaProblem {
  PrepareProblem problem = PrepareProblem::kOther;
  absl::Status status;
};

class Replica {
 public:
  // Waits for queued work.
  ~Replica();

  // Makes a replica. If `kernel_plan` is empty, it chooses the kernels and records the probe; else both must agree with
  // the plan (rules 29 to 31). Blocks, and advances `pulse` (may be null; outlives the replica). On failure returns
  // null and fills `problem`. `profiler` (may be null; outlives the replica) profiles the replica. `where`: the
  // worker's options `--device` and `--local-rank`. `shared_memory` (may be null): as in GradientExchange::Options.
  static std::unique_ptr<Replica> Make(const std::string& metagraph_bytes, const JobSpec& job,
                                       const std::string& kernel_plan, Pulse* pulse, ReplicaProblem& problem,
                                       Profiler* profiler = nullptr, const device::WorkerDevice& where = {},
                                       std::shared_ptr<SharedMemory> shared_memory = nullptr);

  ReplicaState& state() { return *state_; }
  // REQUIRES: not released().
  StepRunner& runner() { return *runner_; }
  // The times of all steps so far.
  StepTimes times() const;

  // Frees all device memory except the state's, after waiting for queued work. Choices, drafts and counters are kept,
  // and so are the state, its copies and snapshots. Returns true if memory was freed: the device has memory of its own,
  // the job lets its use grow (a fixed `resources.gpu_memory` stays reserved), and it was not released already.
  bool ReleaseMemory();
  bool released() const { return runner_ == nullptr; }
  // Allocates that memory again; steps then continue as before. Blocks. ResourceExhausted, with sizes and without
  // allocating anything, if it is not free any more.
  absl::Status TakeMemory();
  // The bytes that ReleaseMemory frees, by the forecast.
  int64_t releasable_bytes() const { return releasable_bytes_; }

  // Generates a text sample with the current state. Blocks; Cancelled after CancelSample(true). REQUIRES: the job has
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

  // The device, for people: "cuda:0 NVIDIA H200".
  std::string device_text() const;
  // The ordinal of its GPU; nullopt on other devices.
  std::optional<int> gpu() const {
    return plans_.chosen.kind == device::DeviceKind::kCuda ? std::optional(plans_.chosen.gpu.ordinal) : std::nullopt;
  }
  // Why this device was chosen, for people.
  const std::string& device_reason() const { return plans_.chosen.reason; }
  // The kernel plan with the recorded probe, and its hash.
  const std::string& kernel_plan() const { return kernel_plan_; }
  const std::string& plan_hash() const { return plan_hash_; }
  int64_t train_samples() const { return train_->num_samples(); }
  // The digest of the job's training data. (Evaluation data is checked against the job's own hash.)
  const std::string& data_digest() const { return data_digest_; }
  // The number of threads for a digest of the state while nothing else computes: the job's threads, but at least 4 on a
  // GPU, where jobs have few.
  int digest_threads() const { return gpu().has_value() ? std::max(digest_threads_, 4) : digest_threads_; }
  // The number of copies of audited states for which there is memory besides the replica.
  int kept_copies() const { return kept_copies_; }
  // TrainingPolicy::settings of its job.
  const std::string& settings() const { return settings_; }
  // The longest run time of a node in the warm-up.
  absl::Duration longest_node() const { return longest_node_; }

 private:
  Replica() = default;
  // Makes the runner and publishes it to other threads.
  absl::Status MakeRunner(StepConfig config);

  std::unique_ptr<DataSource> train_;
  std::unique_ptr<Augmentation> augmentation_;  // of training samples; null: none
  std::unique_ptr<Mixing> mixing_;              // of their passes; null: none
  std::unique_ptr<DataSource> eval_;
  ReplicaPlans plans_;  // includes the device, which must outlive the state
  std::unique_ptr<ReplicaState> state_;
  std::unique_ptr<StepRunner> runner_;           // null: released
  std::unique_ptr<StepConfig> config_;           // for the next runner, while released
  StepTimes times_before_;                       // of earlier runners
  std::map<std::string, std::byte*> variables_;  // addresses for Plan::Bind
  std::map<std::string, std::byte*> evaluated_;  // addresses for the evaluation plan
  bool grows_ = false;                           // by `resources.gpu_memory` the use of memory may grow
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
