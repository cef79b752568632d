// Batch normalisation of rows, X as [batch, channels]: the channels beside each other in memory are the lanes, where a
// walk along one channel would touch a cache line for each value.
//
// The sums are those of the other kernels, one value after another in float64: the same bits.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_BATCH_NORM_CPU_COLUMNS_H_
#define LOCKSTEP_WORKER_KERNELS_BATCH_NORM_CPU_COLUMNS_H_

#include "worker/device/host_kernel.h"
#include "worker/kernels/cpu/code.h"

namespace lockstep::device::cpu::LS_CODE {

// REQUIRES: X has nothing behind its channels.
void ColumnsInference(const HostCall& call);
void ColumnsTraining(const HostCall& call);
void ColumnsGradient(const HostCall& call);
void ColumnsFrozenGradient(const HostCall& call);

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_BATCH_NORM_CPU_COLUMNS_H_
