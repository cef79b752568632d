// The CPU device's own kernels by family, for one instruction set.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_FAMILIES_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_FAMILIES_H_

#include <variant>

#include "worker/kernels/cpu/code.h"
#include "worker/kernels/cpu/own_kernels.h"

namespace lockstep::device::cpu::LS_CODE {

// REQUIRES: Attributes is the type of the op's attributes.
template <typename Attributes>
[[gnu::always_inline]] inline const Attributes& AttributesOf(const KernelRequest& request) {
  return *std::get_if<Attributes>(&request.node->attributes);
}

// Each function returns the kernel function for a request of its family; an empty one for other ops, and for element
// types and shapes that it does not serve. FindOwn (own_kernels.cc) asks most of them only for requests of F32.
OwnFunction OwnElementwise(const KernelRequest& request);
OwnFunction OwnMath(const KernelRequest& request);
OwnFunction OwnLogic(const KernelRequest& request);
OwnFunction OwnRandom(const KernelRequest& request);
OwnFunction OwnActivation(const KernelRequest& request);
OwnFunction OwnPower(const KernelRequest& request);
OwnFunction OwnBroadcast(const KernelRequest& request);
OwnFunction OwnPooling(const KernelRequest& request);
OwnFunction OwnBatchNorm(const KernelRequest& request);
OwnFunction OwnReduction(const KernelRequest& request);
OwnFunction OwnReductionGrad(const KernelRequest& request);
OwnFunction OwnIndexing(const KernelRequest& request);
OwnFunction OwnLoss(const KernelRequest& request);
OwnFunction OwnIntegers(const KernelRequest& request);
OwnFunction OwnIntegerSum(const KernelRequest& request);
OwnFunction OwnMovement(const KernelRequest& request);
OwnFunction OwnGather(const KernelRequest& request);
OwnFunction OwnBlocks(const KernelRequest& request);
OwnFunction OwnRanking(const KernelRequest& request);
OwnFunction OwnPlacement(const KernelRequest& request);
OwnFunction OwnGroupNorm(const KernelRequest& request);
OwnFunction OwnLpNorm(const KernelRequest& request);
OwnFunction OwnPadding(const KernelRequest& request);
OwnFunction OwnResize(const KernelRequest& request);
OwnFunction OwnLayerNorm(const KernelRequest& request);
OwnFunction OwnSoftmax(const KernelRequest& request);
// Softmax along an axis with further dimensions behind it.
OwnFunction OwnPlaneSoftmax(const KernelRequest& request);
OwnFunction OwnAttention(const KernelRequest& request);
// Gradients of weights that oneDNN computes slowly.
OwnFunction OwnConvolution(const KernelRequest& request);

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_FAMILIES_H_
