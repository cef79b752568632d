// The gradient of a convolution's weights, computed for one part of the output channels after another: Winograd's
// method holds all transformed weights at once, several times over, which for 512 x 512 channels is more memory than
// all that a small network keeps.
//
// Threading: as kernel.h.
#ifndef LOCKSTEP_WORKER_KERNELS_CONVOLUTION_DNNL_GRADIENT_PARTS_H_
#define LOCKSTEP_WORKER_KERNELS_CONVOLUTION_DNNL_GRADIENT_PARTS_H_

#include <memory>
#include <string>

#include "worker/kernels/cpu/dnnl_kernel.h"

namespace lockstep::device::cpu {

using GradWeightDesc = dnnl::convolution_backward_weights::primitive_desc;

// An implementation's name, with "/<parts>" behind it where there are several.
struct PartsName {
  std::string implementation;
  int parts = 1;
};
// InvalidArgument when what is behind the slash is no number of parts.
absl::StatusOr<PartsName> ParsePartsName(const std::string& name);

// Scratch of the kernel that MakeGradWeightInParts makes.
size_t ScratchInParts(const GradWeightDesc& part);

// `whole` describes the gradient, `part` that of 1/parts of the output channels. Unimplemented where the parts of the
// weights do not lie one behind another in the layout of the whole.
absl::StatusOr<std::unique_ptr<Kernel>> MakeGradWeightInParts(const DnnlContext& context, const GradWeightDesc& whole,
                                                              const GradWeightDesc& part, int parts, bool with_bias);

}  // namespace lockstep::device::cpu

#endif  // LOCKSTEP_WORKER_KERNELS_CONVOLUTION_DNNL_GRADIENT_PARTS_H_
