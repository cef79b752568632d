// What one worker of a job will hold in memory and which kernels it will run, planned as a worker plans it but without
// the data.
//
// Threading: thread-safe; takes the memory that it forecasts while it runs.
#ifndef LOCKSTEP_WORKER_STEP_FORECAST_H_
#define LOCKSTEP_WORKER_STEP_FORECAST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"
#include "common/job/job.h"
#include "worker/device/devices.h"
#include "worker/plan/kernel_plan.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

// Copies of the state that a worker keeps ready for saves.
inline constexpr int kSnapshotBuffers = 2;

struct ReplicaForecast {
  PlanMemory training;
  PlanMemory evaluation;  // zero for a job without
  int64_t state_bytes = 0;
  int64_t snapshot_bytes = 0;
  // "<node> <op> <implementation>" of the training pass, in order.
  std::vector<std::string> nodes;

  int64_t total() const { return training.total() + evaluation.total() + state_bytes + snapshot_bytes; }
};

// The device that the job computes on, with the choices of a kernel plan (null: its own). Owned by the calling thread.
absl::StatusOr<std::unique_ptr<device::Device>> MakeJobDevice(const JobSpec& job, const KernelPlan* replayed);

// The bytes that `resources.cpu_memory` leaves for plans beside the state and its snapshots; 0: no limit.
// ResourceExhausted when the state alone is over it.
absl::StatusOr<int64_t> PlanLimit(const JobSpec& job, int64_t state_bytes);

// ResourceExhausted when it is over the job's limit, with the largest result named. Other errors as of Plan::Make.
absl::StatusOr<ReplicaForecast> ForecastReplica(const MetaGraph& metagraph, const JobSpec& job);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_FORECAST_H_
