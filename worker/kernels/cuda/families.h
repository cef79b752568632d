// The own kernels by family. Each function answers for its ops, and gives an empty answer for others and for element
// types that it does not serve.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_FAMILIES_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_FAMILIES_H_

#include <variant>

#include "worker/kernels/cuda/own_kernels.h"

namespace lockstep::device::cuda {

// REQUIRES: they are the attributes of the request's op.
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
// Maxima and averages over windows and whole planes, and their gradients.
OwnFunction OwnPooling(const KernelRequest& request);
// Attention and its gradient.
OwnFunction OwnAttention(const KernelRequest& request);
// Resize and its gradient.
OwnFunction OwnResize(const KernelRequest& request);
// Einsum and its gradient.
OwnFunction OwnEinsum(const KernelRequest& request);
// Functions of one number, scaling, dropout.
OwnFunction OwnElementwise(const KernelRequest& request);
// Random numbers.
OwnFunction OwnRandom(const KernelRequest& request);
// Arithmetic over operands that broadcast, the choice between two of them.
OwnFunction OwnBroadcast(const KernelRequest& request);
// Comparisons, logic, casts.
OwnFunction OwnLogic(const KernelRequest& request);
// Powers.
OwnFunction OwnPower(const KernelRequest& request);
// Strided copies: transposing, slicing, joining and the like.
OwnFunction OwnMovement(const KernelRequest& request);
// Padding.
OwnFunction OwnPadding(const KernelRequest& request);
// Triangles, reversed sequences, one-hot vectors.
OwnFunction OwnPlacement(const KernelRequest& request);
// Gathers and scatters.
OwnFunction OwnIndexing(const KernelRequest& request);

// Rows: normalisations of channels, groups and rows; losses and what is counted of labels; rankings and running sums;
// reductions; softmaxes.
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
