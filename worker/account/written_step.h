// Records one training step of a job as a worker with a GPU queues it, on a machine without a GPU. The plans use the
// kernels of the CUDA device, the replica lies in address space without contents, and the real step runner runs a few
// steps, of which the last is kept: a change of the step runner shows here without further work.
//
// Threading: thread-safe; the device belongs to the calling thread during the call.
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
  int64_t parameters = 0;            // number of trained values
  int64_t input_bytes = 0;           // copied to rank 0's device per step, while it computes
  int64_t state_bytes = 0;
  int64_t buckets = 0;
};

// Records the step of rank 0 among `workers`. InvalidArgument when there are more workers than logical shards; other
// errors are those of DraftPlansOn, such as Unimplemented for an op without a kernel.
absl::StatusOr<WrittenStep> WriteStep(const MetaGraph& metagraph, const JobSpec& job, int workers);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_WRITTEN_STEP_H_
