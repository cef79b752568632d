// The own CUDA kernels: one for every op, so that no op depends on a library. Functions that launch them, chosen by
// request; the node's shapes become numbers for the kernel when it is launched.
//
// Invariants
//   * The order of every sum follows from shapes alone. No atomics.
//   * Bits are the same on a GPU and in host execution.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_OWN_KERNELS_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_OWN_KERNELS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "worker/device/cuda/runtime/runtime.h"
#include "worker/device/host_kernel.h"

namespace lockstep::device::cuda {

// One node with its shapes and the device addresses of this binding.
using DeviceCall = HostCall;

// Queues a call's work. Must not allocate device memory or wait.
using LaunchFunction = absl::Status (*)(const DeviceCall& call, StreamHandle stream);

// A function and the name under which kernel plans know it ("own:" in front); `launch` is null where there is none.
struct OwnFunction {
  LaunchFunction launch = nullptr;
  const char* name = "";
  size_t workspace_bytes = 0;
  // What the function applies to its first output; a family that fuses answers with what the request asks.
  Epilogue epilogue = Epilogue::kNone;
};

// The function that serves a request, if one does.
OwnFunction FindOwn(const KernelRequest& request);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_OWN_KERNELS_H_
