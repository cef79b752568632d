// Forecasts the memory and the kernels of one worker of a job, from the worker's own plans, which are drafted without
// the data and without allocating memory.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_STEP_FORECAST_H_
#define LOCKSTEP_WORKER_STEP_FORECAST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"
#include "common/job/job.h"
#include "worker/plan/plan.h"
#include "worker/step/replica_plans.h"

namespace lockstep::worker {

// The buffers for copies of the state that a worker reserves for saves.
inline constexpr int kSnapshotBuffers = 2;

// The copies of audited states that a worker keeps, if memory allows, to return to if replicas differ.
inline constexpr int kKeptCopies = 2;

// The host memory of a worker besides its replica, in bytes.
struct HostUse {
  int64_t process = 0;  // the program itself: libraries, graphs, drafted kernels, connections
  int64_t data = 0;     // DataSource::held_bytes of all sources
};

// All numbers are bytes.
struct ReplicaForecast {
  HostUse beside;
  PlanMemory training;
  PlanMemory evaluation;  // zero if the job does not evaluate
  PlanMemory text;        // zero if the job does not generate samples
  int64_t state_bytes = 0;
  int64_t snapshot_bytes = 0;
  int64_t kept_bytes = 0;       // copies of audited states; set by KeepWhatFits
  int64_t exchange_bytes = 0;   // sums of gradients over logical shards
  int64_t input_bytes = 0;      // staging of the next pass's inputs on a GPU (input_staging.h)
  int64_t batch_bytes = 0;      // training batches read ahead, and the evaluation batch
  int64_t host_copy_bytes = 0;  // host copies of state and sums on a GPU
  int64_t eval_samples = 0;     // that the plans were drafted for
  // The available device memory; 0: the device computes in host memory.
  int64_t device_memory = 0;
  // The contents of the training plan's arena at its peak.
  PlanPeak peak;
  // Of the training pass, in order.
  std::vector<PlannedStep> steps;

  // The total, which is also the peak: everything is held at the same time, as long as the replica lives.
  int64_t total() const {
    return near_device() + snapshot_bytes + kept_bytes + batch_bytes + host_copy_bytes + beside.process + beside.data;
  }
  // The parts of the total in device memory and in host memory. Snapshots, batches, host copies and `beside` are always
  // in host memory.
  int64_t device_total() const { return device_memory > 0 ? near_device() : 0; }
  int64_t host_total() const { return total() - device_total(); }

 private:
  int64_t near_device() const {
    return training.total() + evaluation.total() + text.total() + state_bytes + exchange_bytes + input_bytes;
  }
};

// The forecast of a worker with these plans. ResourceExhausted when the size of the state alone exceeds any limit.
absl::StatusOr<ReplicaForecast> ForecastOf(const MetaGraph& metagraph, const JobSpec& job, const ReplicaPlans& plans,
                                           const HostUse& beside = {});

// Adds copies of audited states to the forecast if the job audits replicas, wants such copies, and
// `resources.cpu_memory` has room for them. They are optional: no job is refused because of them.
void KeepWhatFits(const JobSpec& job, ReplicaForecast& forecast);

// ResourceExhausted when the forecast exceeds `resources.cpu_memory`, or the device memory that is allowed by
// `resources.gpu_memory` and free. The message names the largest values and settings that would fit; finding these
// drafts further plans for a worker with device options `where`, and advances `pulse` (may be null).
absl::Status CheckMemoryLimit(const ReplicaForecast& forecast, const MetaGraph& metagraph, const JobSpec& job,
                              Pulse* pulse, const device::WorkerDevice& where = {});

// Drafts the plans of the job, without that of a rest (DraftRest), for a worker with device options `where`, and checks
// the limits for the replica alone.
// Errors of CheckMemoryLimit and DraftReplicaPlans.
absl::StatusOr<ReplicaForecast> ForecastReplica(const MetaGraph& metagraph, const JobSpec& job,
                                                const device::WorkerDevice& where = {});

struct DataSize {
  int64_t held_bytes = 0;    // DataFacts::held_bytes
  int64_t eval_samples = 0;  // 0: the job does not evaluate
};

// The same for a whole worker with its data. The memory of its process is measured on this process.
absl::StatusOr<ReplicaForecast> ForecastWorker(const MetaGraph& metagraph, const JobSpec& job, const DataSize& data,
                                               const device::WorkerDevice& where = {});

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_FORECAST_H_
