// Batch normalisation of values in blocked-channel layout, training and gradient: vectorised over a block's channels.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_BATCH_NORM_CPU_BLOCKED_H_
#define LOCKSTEP_WORKER_KERNELS_BATCH_NORM_CPU_BLOCKED_H_

#include "worker/device/host_kernel.h"
#include "worker/kernels/cpu/code.h"

namespace lockstep::device::cpu::LS_CODE {

// REQUIRES: X, Y, dY and dX have the same blocked layout, with blocks that ServesChannelBlock names (own_kernels.h).
void BlockedTraining(const HostCall& call);
void BlockedGradient(const HostCall& call);

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_BATCH_NORM_CPU_BLOCKED_H_
