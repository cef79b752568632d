// NCCL as it is installed, found at run time: a worker without it, or with one GPU, runs as well.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_NCCL_LOAD_NCCL_H_
#define LOCKSTEP_WORKER_COLLECTIVES_NCCL_LOAD_NCCL_H_

#include "absl/status/statusor.h"
#include "worker/collectives/nccl/nccl_api.h"

namespace lockstep::worker::nccl {

// The functions of libnccl.so.2, loaded once and kept. In host execution: its stand-in. FailedPrecondition in one line
// when it is missing or older than 2.18.
absl::StatusOr<const Api*> LoadNccl();

}  // namespace lockstep::worker::nccl

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_LOAD_NCCL_H_
