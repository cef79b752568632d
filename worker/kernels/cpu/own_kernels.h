// The CPU's own loops, F32 only: what oneDNN has not, or serves by reference code. Written so that the compiler can
// vectorise them, and compiled once per instruction set (code.h). The formulas and the order of every sum are the same
// in all of them, and sums run in fixed blocks, so that no bit depends on the instruction set or the threads.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_OWN_KERNELS_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_OWN_KERNELS_H_

#include "worker/device/host_kernel.h"

namespace lockstep::device::cpu {

// A function and the name under which kernel plans know it.
struct OwnFunction {
  HostFunction function = nullptr;  // null where there is none
  const char* name = "";
  // True for element-wise functions, which run over a blocked value as it lies.
  bool any_layout = false;
  // True for functions that take blocked channels (Layout::channel_block) of their largest operands.
  bool channel_blocks = false;
  size_t workspace_bytes = 0;
  // Why there is no function for a node of an op that the own kernels serve; null: they do not serve the op.
  const char* refusal = nullptr;
};

// Refusals of several families.
constexpr char kOtherType[] = "serves other element types";
constexpr char kManyDimensions[] = "serves operands of fewer dimensions, those that lie together counted as one";

// The function that serves a request, or why none does. REQUIRES: the machine has the instruction set.
namespace portable {
OwnFunction FindOwn(const KernelRequest& request);
}
namespace avx2 {
OwnFunction FindOwn(const KernelRequest& request);
}
namespace avx512 {
OwnFunction FindOwn(const KernelRequest& request);
}

}  // namespace lockstep::device::cpu

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_OWN_KERNELS_H_
