// The CUDA device's own kernels by family. Each function returns the launch function for a request of its family; an
// empty one for other ops and for element types that it does not serve.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_FAMILIES_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_FAMILIES_H_

#include <variant>

#include "worker/kernels/cuda/own_kernels.h"

namespace lockstep::device::cuda {

// REQUIRES: Attributes is the type of the op's attributes.
template <typename Attributes>
const Attributes& AttributesOf(const KernelRequest& request) {
  return *std::get_if<Attributes>(&request.node->attributes);
}

// Activations and their gradients.
OwnFunction OwnActivation(const KernelRequest& request);
// Gemm, MatMul, BatchMatMul.
OwnFunction OwnProduct(const KernelRequest& request);
// Conv, ConvTranspose and the gradients.
OwnFunction OwnConvolution(const KernelRequest& request);
// Max and average pooling, over windows and global, and their gradients.
OwnFunction OwnPooling(const KernelRequest& request);
// Attention and its gradient.
OwnFunction OwnAttention(const KernelRequest& request);
// Resize and its gradient.
OwnFunction OwnResize(const KernelRequest& request);
// Einsum and its gradient.
OwnFunction OwnEinsum(const KernelRequest& request);
// Unary functions, scaling, dropout.
OwnFunction OwnElementwise(const KernelRequest& request);
// Random numbers.
OwnFunction OwnRandom(const KernelRequest& request);
// Arithmetic over broadcast operands, Where.
OwnFunction OwnBroadcast(const KernelRequest& request);
// Comparisons, logic, casts.
OwnFunction OwnLogic(const KernelRequest& request);
// Powers.
OwnFunction OwnPower(const KernelRequest& request);
// Strided copies: Transpose, Slice, Concat and the like.
OwnFunction OwnMovement(const KernelRequest& request);
// Padding.
OwnFunction OwnPadding(const KernelRequest& request);
// Trilu, ReverseSequence, OneHot.
OwnFunction OwnPlacement(const KernelRequest& request);
// Gathers and scatters.
OwnFunction OwnIndexing(const KernelRequest& request);

// Kernels over rows: batch, group and layer normalisation; losses and metrics; ArgMax, TopK, CumSum; reductions;
// softmax.
OwnFunction OwnBatchNorm(const KernelRequest& request);
OwnFunction OwnGroupNorm(const KernelRequest& request);
OwnFunction OwnLayerNorm(const KernelRequest& request);
OwnFunction OwnLoss(const KernelRequest& request);
OwnFunction OwnPointwiseLoss(const KernelRequest& request);
OwnFunction OwnRanking(const KernelRequest& request);
OwnFunction OwnReduceGradient(const KernelRequest& request);
OwnFunction OwnReduction(const KernelRequest& request);
OwnFunction OwnSoftmax(const KernelRequest& request);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_FAMILIES_H_
