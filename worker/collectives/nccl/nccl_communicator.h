// The device communicator over NCCL: reduces gradient buckets between GPUs, exactly as 64-bit integers or natively as
// floats, and broadcasts states.
//
// The host communicator of the same generation carries NCCL's unique id from rank 0 to the other ranks, so that the id
// cannot reach another generation, and it carries aborts. For exact sums a bucket of n elements on r ranks is cut into
// r equal parts of a multiple of 16 elements and a remainder of less than 16 r elements:
//
//   reduce-scatter the parts, all-reduce the remainder (one group) ─> dequantise own part and remainder ─> all-gather
//
// A broadcast goes in pieces of 8 MiB. A rank that keeps nothing of it, a case that NCCL does not know, receives the
// pieces into scratch memory of one piece, which also serves the warm-up sums while connecting.
//
// At most kDeviceCallsUnderWay buckets and pieces are in flight: more could fill the device's launch queue, and a
// launch that blocks there can be freed only by an abort.
//
// A watching thread polls NCCL's asynchronous errors and the host communicator's status. The first failure of either
// aborts both, here and, through the host communicator, on every rank. When NCCL does not return from an abort or from
// connecting, the process ends (return_limit.h).
//
// Threading: Reduce and Broadcast are called by the device's owner thread; Abort is thread-safe. NCCL's own functions
// are called one at a time (call_turn.h), the abort last.
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
  // The limit for connecting all ranks: less than the time that ranks wait for each other's outcome (join_gpus.h).
  absl::Duration connect_timeout = absl::Seconds(40);
  // The period at which the watching thread polls.
  absl::Duration watch_interval = absl::Milliseconds(5);
  // The limit for an abort, including a call that it has to wait for. It usually takes less than a second, unless
  // passes were queued before NCCL's kernels.
  absl::Duration abort_limit = absl::Minutes(1);
};

// Waits for a call of `host` and aborts `host` after `limit`. In either case nothing touches the call's buffer any more
// when this returns.
absl::Status WaitOrAbort(Communicator& host, Pending& handle, absl::Duration limit);

// Connects this rank to the other ranks of `host`, each of which calls this at the same place in its sequence of
// collectives. Blocks; ends early when `host` breaks. `host` and `api` outlive the result. Aborted with the first
// cause; DeadlineExceeded after connect_timeout; Unavailable with NCCL's message.
absl::StatusOr<std::unique_ptr<DeviceCommunicator>> ConnectNccl(const nccl::Api& api, Communicator& host,
                                                                const NcclOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_NCCL_COMMUNICATOR_H_
