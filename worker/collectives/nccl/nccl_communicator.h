// Reduces buckets of gradients between GPUs by NCCL: exactly, as 64-bit integers that each rank turns into floats for
// its part, or natively. Spreads states among them.
//
// The host communicator of the same generation carries NCCL's unique id from rank 0 to the others, so that the id is
// fenced by the generation as everything else is, and it carries the news of a failure. A bucket of n elements on r
// ranks is cut into r equal parts of a multiple of 16 elements and a rest of less than 16 r elements:
//
//   reduce-scatter the parts, all-reduce the rest (one group) ─> dequantise the own part and the rest ─> all-gather
//
// A broadcast goes in pieces of 8 MiB. A rank that keeps nothing of it, which NCCL does not know, takes the pieces into
// scratch memory of the communicator's own (one piece, used for the first sums before).
//
// At most 32 buckets and pieces are under way: more could fill the device's queue of launches, and a launch that blocks
// there can only be freed by an abort.
//
// A thread of this object watches what no call reports: NCCL's asynchronous errors, and the host communicator's
// status. Either way the first failure aborts both, here and through the host communicator on every rank. Where NCCL
// does not return from that, or from connecting, the process ends (return_limit.h).
//
// Threading: as device_communicator.h. NCCL's own functions are called one at a time (call_turn.h), the abort last.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_
#define LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/collectives/communicator.h"
#include "worker/collectives/device_communicator.h"
#include "worker/collectives/nccl/nccl_api.h"

namespace lockstep::worker {

struct NcclOptions {
  int ordinal = 0;  // of the GPU
  // How long all ranks together may take to connect: less than they wait for each other's outcome.
  absl::Duration connect_timeout = absl::Seconds(40);
  // How often the watching thread looks.
  absl::Duration watch_interval = absl::Milliseconds(5);
  // How long an abort may take, or a call that it has to wait for. It is done in less than a second, but for passes
  // that were queued before NCCL's kernels.
  absl::Duration abort_limit = absl::Minutes(1);
};

// Waits for a call of `host`; aborts it after `limit`, so that nothing touches the call's buffer on return.
absl::Status WaitOrAbort(Communicator& host, Pending& handle, absl::Duration limit);

// Connects this rank to the other ranks of `host`, each of which calls this at the same place in its sequence of
// collectives. Blocks; ends early when `host` breaks. `host` and `api` outlive the result. Aborted with the first
// cause; DeadlineExceeded; Unavailable with NCCL's words.
absl::StatusOr<std::unique_ptr<DeviceCommunicator>> ConnectNccl(const nccl::Api& api, Communicator& host,
                                                                const NcclOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_
