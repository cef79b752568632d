// Batch normalisation of X [batch, channels]: vectorised over adjacent channels, since a walk along one channel would
// touch a cache line per value.
//
// Sums are formed as in the other kernels, value by value in float64, and have the same bits.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_BATCH_NORM_CPU_COLUMNS_H_
#define LOCKSTEP_WORKER_KERNELS_BATCH_NORM_CPU_COLUMNS_H_

#include "worker/device/host_kernel.h"
#include "worker/kernels/cpu/code.h"

namespace lockstep::device::cpu::LS_CODE {

// REQUIRES: X has rank 2, or all dimensions behind the channels are 1.
void ColumnsInference(const HostCall& call);
void ColumnsTraining(const HostCall& call);
void ColumnsGradient(const HostCall& call);
void ColumnsFrozenGradient(const HostCall& call);

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_BATCH_NORM_CPU_COLUMNS_H_
