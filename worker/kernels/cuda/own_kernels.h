// The project's own CUDA kernels: one for every op, so that no op depends on a library. A request selects a function
// that launches the kernel and passes it the node's shapes as numbers.
//
// Invariants
//   * The order of every sum depends on shapes alone. There are no atomics.
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

// A node with its shapes and the bound addresses, which are in device memory.
using DeviceCall = HostCall;

// Queues the work of a call. Must not allocate device memory or wait.
using LaunchFunction = absl::Status (*)(const DeviceCall& call, StreamHandle stream);

// A launch function and its name in kernel plans, without the prefix "own:".
struct OwnFunction {
  LaunchFunction launch = nullptr;  // null where there is none
  const char* name = "";
  size_t workspace_bytes = 0;
  // The epilogue that the function applies: the request's if the family fuses it, else kNone.
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
