// One training step of a job as a worker with a GPU queues it, written down on a machine without one: the plans are
// drafted with the kernels of the CUDA device, the replica is bound to addresses that hold nothing, and the step runner
// makes its steps, of which the last is kept. So what changes in the engine changes here.
//
// Threading: thread-safe; the calling thread owns the device for the time of the call.
#ifndef LOCKSTEP_WORKER_ACCOUNT_WRITTEN_STEP_H_
#define LOCKSTEP_WORKER_ACCOUNT_WRITTEN_STEP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"
#include "common/job/job.h"
#include "worker/account/tape.h"

namespace lockstep::worker {

struct WrittenStep {
  std::vector<Work> works;
  std::vector<TapeEntry> entries;
  int compute_stream = 0;
  int workers = 1;
  int64_t samples = 0;               // of a step, over all workers
  int64_t positions_per_sample = 0;  // of token models; else 0
  int64_t parameters = 0;            // trained values
  int64_t input_bytes = 0;           // of rank 0's passes in a step, which come over the bus beside the passes
  int64_t state_bytes = 0;
  int64_t buckets = 0;
};

// The step of rank 0 of `workers`. InvalidArgument where there are more workers than logical shards; Unimplemented and
// others as of DraftPlansOn.
absl::StatusOr<WrittenStep> WriteStep(const MetaGraph& metagraph, const JobSpec& job, int workers);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_WRITTEN_STEP_H_
