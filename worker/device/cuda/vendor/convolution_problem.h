// Translates a convolution or one of its gradients to cuDNN's terms. Pure, so that refusals can be tested without a
// GPU.
//
// All are one relation between x [N, C, ...], w [K, C / group, ...] and y [N, K, ...] with two or three spatial
// dimensions; a pass computes one of the three from the other two. A single spatial dimension is extended by a leading
// dimension of size 1. A transposed convolution is the pass to x.
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
  // All values have channels-last layout.
  bool channels_last = false;
  Shape x, w, y;
  // One per spatial dimension. Padding is the same on both sides.
  std::vector<int64_t> pads, strides, dilations;
  // Fused by cuDNN into the pass to y: a bias per channel, then ReLU.
  bool bias = false;
  bool relu = false;
  // Done by a separate own kernel after the pass: adding a bias per channel to x, or summing y per channel.
  bool bias_behind = false;
  bool bias_gradient = false;
};

// Equal keys mean that one cuDNN plan serves both problems.
std::string KeyOf(const ConvolutionProblem& problem);

// Unimplemented with the reason when cuDNN cannot serve the node. REQUIRES: Conv, ConvTranspose, ConvGradInput or
// ConvGradWeight.
absl::StatusOr<ConvolutionProblem> DescribeConvolution(const KernelRequest& request, bool tf32);

// Whether tensor cores, which work on channels-last values, compute such a convolution; that layout is then tried
// first.
bool PrefersChannelsLast(const ConvolutionProblem& problem);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CONVOLUTION_PROBLEM_H_
