// The reference kernels by op family. A function that takes an OpType returns the kernel for elements of type T. One
// that takes a request serves ops whose inputs and outputs differ in type, or that only move elements, and checks the
// types itself. Null when the family does not have the op, or not for these types. Floating-point sums are formed in
// double, in index order.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_REFERENCE_FAMILIES_H_
#define LOCKSTEP_WORKER_KERNELS_REFERENCE_FAMILIES_H_

#include "worker/device/host_kernel.h"

namespace lockstep::device::reference {

// Comparisons, logic, tests for NaN and infinity, Cast, Where and its gradient, Identity.
HostFunction LogicFunction(const KernelRequest& request);
// Pow and its gradient.
HostFunction PowerFunction(const KernelRequest& request);

// Add, Sub, Mul, Div, Mod, Min, Max, Neg, Abs, Sign, Clip for floating types and integers, which wrap around.
template <typename T>
HostFunction ArithmeticFunction(OpType type);

// Reductions of integers: sums and products wrap around, a mean is truncated towards zero.
template <typename T>
HostFunction IntegerReduceFunction(OpType type);

// MaxPool of integers.
template <typename T>
HostFunction IntegerPoolingFunction(OpType type);

// The bytes of workspace that the kernel of a request needs, mostly for sums in double.
size_t WorkspaceBytes(const KernelRequest& request);
// The number of doubles of workspace that attention or its gradient needs.
int64_t AttentionDoubles(const KernelRequest& request);

// The families below serve F32 and F64.

// Reciprocal, Sqrt, Exp, Log, Erf and its gradient, trigonometric and hyperbolic functions, their inverses and the
// gradients of those, rounding, the gradients of Min and Max.
template <typename T>
HostFunction MathFunction(OpType type);

// Activations except Clip, and their gradients.
template <typename T>
HostFunction ActivationFunction(OpType type);
// Scale, dropout.
template <typename T>
HostFunction ElementwiseFunction(OpType type);
// Random numbers.
template <typename T>
HostFunction RandomFunction(OpType type);
// Gemm, MatMul, BatchMatMul.
template <typename T>
HostFunction MatrixFunction(OpType type);
// Conv, ConvTranspose and the gradients.
template <typename T>
HostFunction SpatialFunction(OpType type);
// Max and average pooling, over windows and global, and their gradients.
template <typename T>
HostFunction PoolingFunction(OpType type);
// Einsum and its gradient.
template <typename T>
HostFunction EinsumFunction(OpType type);
// Resize and its gradient.
template <typename T>
HostFunction ResizeFunction(OpType type);
// Batch normalisation: inference, training, and the gradients of both.
template <typename T>
HostFunction BatchNormFunction(OpType type);
// Layer, root-mean-square, group, instance and Lp normalisation and their gradients.
template <typename T>
HostFunction NormalisationFunction(OpType type);
// Attention and its gradient.
template <typename T>
HostFunction AttentionFunction(OpType type);
// Softmax, its logarithm and their gradients.
template <typename T>
HostFunction SoftmaxFunction(OpType type);
// Cross entropy, negative log likelihood, pointwise losses, their gradients, and metrics.
template <typename T>
HostFunction LossFunction(OpType type);
// Reductions, their gradients, MaskedSum.
template <typename T>
HostFunction ReduceFunction(OpType type);

// The two below take a request.

// Ops that move elements of any type without interpreting them: Flatten, Reshape, Squeeze, Unsqueeze, Expand,
// Transpose, DepthToSpace, SpaceToDepth, Concat, Split, Slice, its gradient, Tile, Pad, Gather, GatherElements,
// GatherND, and those of PlacementFunction.
HostFunction MovementFunction(const KernelRequest& request);
// The gradients of padding and gathering, ScatterElements and ScatterND with a reduction, and those of RankingFunction.
HostFunction IndexingFunction(const KernelRequest& request);

// ScatterElements and ScatterND without a reduction, their gradients, Trilu, ReverseSequence, OneHot; T is an unsigned
// integer of the elements' size.
template <typename T>
HostFunction PlacementFunction(const Node& node);
// ArgMax, ArgMin, TopK, CumSum for floating types and integers.
template <typename T>
HostFunction RankingFunction(OpType type);

}  // namespace lockstep::device::reference

#endif  // LOCKSTEP_WORKER_KERNELS_REFERENCE_FAMILIES_H_
