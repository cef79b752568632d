// The CPU's own loops, F32 only: what oneDNN has not, or serves by reference code. Written so that the compiler can
// vectorise them for the baseline instruction set; sums run in fixed blocks, so that no bit depends on the threads.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_CPU_OWN_KERNELS_H_
#define LOCKSTEP_WORKER_DEVICE_CPU_OWN_KERNELS_H_

#include "worker/device/host_kernel.h"

namespace lockstep::device::cpu {

// A function and the name under which kernel plans know it; `function` is null where there is none.
struct OwnFunction {
  HostFunction function = nullptr;
  const char* name = "";
  // True for element-wise functions, which run over a blocked value as it lies.
  bool any_layout = false;
  size_t workspace_bytes = 0;
};

// By family; the request's shapes may exclude a function.
OwnFunction OwnElementwise(const KernelRequest& request);
OwnFunction OwnActivation(const KernelRequest& request);
OwnFunction OwnPower(const KernelRequest& request);
OwnFunction OwnBroadcast(const KernelRequest& request);
OwnFunction OwnPooling(const KernelRequest& request);
OwnFunction OwnBatchNorm(const KernelRequest& request);
OwnFunction OwnReduction(const KernelRequest& request);
OwnFunction OwnMovement(const KernelRequest& request);
OwnFunction OwnLayerNorm(const KernelRequest& request);
OwnFunction OwnSoftmax(const KernelRequest& request);

}  // namespace lockstep::device::cpu

#endif  // LOCKSTEP_WORKER_DEVICE_CPU_OWN_KERNELS_H_
