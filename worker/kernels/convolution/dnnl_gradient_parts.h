// The gradient of a convolution's weights, computed for one part of the output channels at a time to save memory:
// oneDNN's Winograd implementation holds several copies of all transformed weights, which for 512 x 512 channels is
// more memory than the activations of a small network.
//
// Threading: kernels are owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CONVOLUTION_DNNL_GRADIENT_PARTS_H_
#define LOCKSTEP_WORKER_KERNELS_CONVOLUTION_DNNL_GRADIENT_PARTS_H_

#include <memory>
#include <string>

#include "worker/kernels/cpu/dnnl_kernel.h"

namespace lockstep::device::cpu {

using GradWeightDesc = dnnl::convolution_backward_weights::primitive_desc;

// An implementation's name, followed by "/<parts>" if there are several parts.
struct PartsName {
  std::string implementation;
  int parts = 1;
};
// InvalidArgument when the text after the slash is not a number of parts.
absl::StatusOr<PartsName> ParsePartsName(const std::string& name);

// The bytes of workspace of the kernel that MakeGradWeightInParts makes.
size_t ScratchInParts(const GradWeightDesc& part);

// `whole` describes the gradient, `part` the gradient for 1/parts of the output channels. Unimplemented when the parts
// are not contiguous in the layout of the whole weights.
absl::StatusOr<std::unique_ptr<Kernel>> MakeGradWeightInParts(const DnnlContext& context, const GradWeightDesc& whole,
                                                              const GradWeightDesc& part, int parts, bool with_bias);

}  // namespace lockstep::device::cpu

#endif  // LOCKSTEP_WORKER_KERNELS_CONVOLUTION_DNNL_GRADIENT_PARTS_H_
