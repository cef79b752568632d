// The CPU device's own kernels, for ops that oneDNN lacks or runs by reference code. They are written so that the
// compiler can vectorise them, and compiled once per instruction set (code.h). Formulas and the order of sums are the
// same in all of them, and sums run in fixed blocks, so that no bit depends on the number of threads, nor, except for
// fused multiply-add in attention and convolutions, on the instruction set.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_OWN_KERNELS_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_OWN_KERNELS_H_

#include "worker/device/host_kernel.h"

namespace lockstep::device::cpu {

// A kernel function and its name in kernel plans.
struct OwnFunction {
  HostFunction function = nullptr;  // null where there is none
  const char* name = "";
  // True for element-wise functions, which work on the elements of a blocked value in memory order.
  bool any_layout = false;
  // True for functions that accept blocked channels (Layout::channel_block) in their largest operands, in blocks that
  // ServesChannelBlock names.
  bool channel_blocks = false;
  size_t workspace_bytes = 0;
  // Why there is no function for a node of an op that the own kernels serve; null: they do not serve the op.
  const char* refusal = nullptr;
};

// oneDNN makes blocks of 4 channels where groups of a convolution have so many, and of 8 or 16 elsewhere.
constexpr bool ServesChannelBlock(int channels) { return channels == 4 || channels == 8 || channels == 16; }

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
