// Loads the installed NCCL at run time, so that workers run without it too.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_NCCL_LOAD_NCCL_H_
#define LOCKSTEP_WORKER_COLLECTIVES_NCCL_LOAD_NCCL_H_

#include "absl/status/statusor.h"
#include "worker/collectives/nccl/nccl_api.h"

namespace lockstep::worker::nccl {

// The functions of libnccl.so.2, loaded once and kept for the life of the process; in host execution those of the fake
// (nccl_on_host.h). FailedPrecondition, in one line, when NCCL is missing or older than 2.18.
absl::StatusOr<const Api*> LoadNccl();

}  // namespace lockstep::worker::nccl

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_LOAD_NCCL_H_
