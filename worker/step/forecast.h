// What one worker of a job will hold in memory and which kernels it will run, from the plans that a worker makes,
// drafted without the data and without taking the memory.
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

// Copies of the state that a worker keeps ready for saves.
inline constexpr int kSnapshotBuffers = 2;

// Copies of its state at audits that a worker keeps for a way back after replicas differed, where memory allows.
inline constexpr int kKeptCopies = 2;

// What a worker holds beside its replica.
struct HostUse {
  int64_t process = 0;  // the program itself: libraries, graphs, kernels that were drafted, connections
  int64_t data = 0;     // DataSource::held_bytes of all sources
};

struct ReplicaForecast {
  HostUse beside;
  PlanMemory training;
  PlanMemory evaluation;  // zero for a job without
  PlanMemory text;        // likewise
  int64_t state_bytes = 0;
  int64_t snapshot_bytes = 0;
  int64_t kept_bytes = 0;       // copies of audited states; KeepWhatFits decides
  int64_t exchange_bytes = 0;   // sums of gradients over logical shards
  int64_t input_bytes = 0;      // of the next pass, on their way to a device with memory of its own
  int64_t batch_bytes = 0;      // training batches read ahead, and the evaluation batch
  int64_t host_copy_bytes = 0;  // of state and sums, beside a device with memory of its own
  // What a device with memory of its own has to give; 0: the device computes in the host's.
  int64_t device_memory = 0;
  // What shares the training plan's arena at its peak.
  PlanPeak peak;
  // Of the training pass, in order.
  std::vector<PlannedStep> steps;

  // The peak. Everything is held at once: all plans live as long as the replica.
  int64_t total() const {
    return near_device() + snapshot_bytes + kept_bytes + batch_bytes + host_copy_bytes + beside.process + beside.data;
  }
  // Of that, what lies in a device's own memory, and in the host's: there are snapshots, batches, copies and `beside`.
  int64_t device_total() const { return device_memory > 0 ? near_device() : 0; }
  int64_t host_total() const { return total() - device_total(); }

 private:
  int64_t near_device() const {
    return training.total() + evaluation.total() + text.total() + state_bytes + exchange_bytes + input_bytes;
  }
};

// Of a worker with these plans. ResourceExhausted when the state alone is over every limit.
absl::StatusOr<ReplicaForecast> ForecastOf(const MetaGraph& metagraph, const JobSpec& job, const ReplicaPlans& plans,
                                           const HostUse& beside = {});

// Adds copies of audited states to the forecast where the job compares replicas, wants them and `resources.cpu_memory`
// has room for them. They are the first to go: no job is refused because of them.
void KeepWhatFits(const JobSpec& job, ReplicaForecast& forecast);

// ResourceExhausted when the forecast is over `resources.cpu_memory`, or over what the device has to give by
// `resources.gpu_memory` and by what is free, with the largest values named and what would fit, which takes further
// drafts for a worker that was told `where`; those advance `pulse` (may be null).
absl::Status CheckMemoryLimit(const ReplicaForecast& forecast, const MetaGraph& metagraph, const JobSpec& job,
                              Pulse* pulse, const device::WorkerDevice& where = {});

// Drafts the plans of the job for a worker that was told `where`, and checks the limits, for the replica alone; errors
// as of DraftReplicaPlans too.
absl::StatusOr<ReplicaForecast> ForecastReplica(const MetaGraph& metagraph, const JobSpec& job,
                                                const device::WorkerDevice& where = {});

// The same for a whole worker, whose data take `data_bytes`. What its process takes is measured on this one.
absl::StatusOr<ReplicaForecast> ForecastWorker(const MetaGraph& metagraph, const JobSpec& job, int64_t data_bytes,
                                               const device::WorkerDevice& where = {});

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_FORECAST_H_
