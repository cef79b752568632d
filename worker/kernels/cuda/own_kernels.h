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

// A function and the name under which kernel plans know it ("own:" in front).
struct OwnFunction {
  LaunchFunction launch = nullptr;  // null where there is none
  const char* name = "";
  size_t workspace_bytes = 0;
  // What the function applies to its first output; a family that fuses answers with what the request asks.
  Epilogue epilogue = Epilogue::kNone;
  // Why there is no function for a node of an op that the own kernels serve; null: they do not serve the op.
  const char* refusal = nullptr;
};

// Refusals of several families.
constexpr char kOtherType[] = "serves other element types";
constexpr char kManyDimensions[] = "serves operands of fewer dimensions, those that lie together counted as one";
constexpr char kOtherRows[] = "serves rows of fewer alternating dimensions, and less than 2^31 of them";
constexpr char kTooLarge[] = "serves no empty operands, and none of about 2^31 elements";

// The function that serves a request, or why none does.
OwnFunction FindOwn(const KernelRequest& request);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_OWN_KERNELS_H_
