// Decides whether NCCL reduces the gradients of a generation, with the same result on every rank, and connects it.
//
// NCCL is used unless a rank lacks it, or two ranks share a GPU and one of them has an NCCL older than 2.30.3, the
// first version that supports this. A different NCCL_HOSTID for each rank makes ranks on one GPU look like ranks on
// different hosts, to NCCL and to this check. Without NCCL gradients travel through host memory; exact sums have the
// same bits either way.
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
