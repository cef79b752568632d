// Decides, alike on every rank, whether NCCL reduces a generation's gradients, and connects it.
//
// NCCL does so unless a rank lacks it, or two ranks share a GPU and the NCCL of one of them is older than 2.30.3, which
// is the first that serves that. NCCL_HOSTID, set to something else for each rank, makes ranks on one GPU look like
// ranks on other hosts to NCCL, and to this. Without NCCL the gradients travel through host memory; exact sums have
// the same bits either way.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_CUDA_LIBRARY_JOIN_GPUS_H_
#define LOCKSTEP_WORKER_CUDA_LIBRARY_JOIN_GPUS_H_

#include "absl/status/statusor.h"
#include "worker/collectives/communicator.h"
#include "worker/cuda_library/library.h"

namespace lockstep::worker {

// As CudaLibrary::join.
absl::StatusOr<device::JoinedGpus> JoinGpus(int ordinal, Communicator& host);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_CUDA_LIBRARY_JOIN_GPUS_H_
