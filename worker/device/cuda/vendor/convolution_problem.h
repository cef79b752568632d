// A convolution or one of its gradients as cuDNN takes it, from what a plan asks. Pure, so that every reason against a
// node is known without a GPU.
//
// All of them are one relation between x [N, C, ...], w [K, C / group, ...] and y [N, K, ...] with two or three spatial
// dimensions; a pass computes one of the three from the other two. One spatial dimension is seen as two, the first of
// them with one element. A transposed convolution is the pass to x.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CONVOLUTION_PROBLEM_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CONVOLUTION_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "worker/device/cuda/vendor/product_problem.h"
#include "worker/device/kernel.h"

namespace lockstep::device::cuda {

enum class ConvolutionPass : uint8_t { kY, kX, kW };

struct ConvolutionProblem {
  ConvolutionPass pass = ConvolutionPass::kY;
  ProductMath math = ProductMath::kF32;
  DType dtype = DType::kF32;
  // All values lie channels last.
  bool channels_last = false;
  Shape x, w, y;
  // One per spatial dimension. Padding is the same on both sides.
  std::vector<int64_t> pads, strides, dilations;
  // What cuDNN fuses behind the pass to y: a value per channel is added, and then what is negative becomes 0.
  bool bias = false;
  bool relu = false;
  // What is done by a kernel of our own behind the pass: adding a value per channel to x, or summing y per channel.
  bool bias_behind = false;
  bool bias_gradient = false;
};

// The same for problems of which one plan of cuDNN serves both.
std::string KeyOf(const ConvolutionProblem& problem);

// Unimplemented with the reason where cuDNN does not serve the node. REQUIRES: Conv, ConvTranspose, ConvGradInput or
// ConvGradWeight.
absl::StatusOr<ConvolutionProblem> DescribeConvolution(const KernelRequest& request, bool tf32);

// Whether matrix units, which read channels last, compute a convolution of this kind: then it is asked for that way
// first.
bool PrefersChannelsLast(const ConvolutionProblem& problem);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CONVOLUTION_PROBLEM_H_
