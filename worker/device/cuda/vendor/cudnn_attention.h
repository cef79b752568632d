// Attention and its gradient by cuDNN, with the kernels of our own that turn its statistics into the op's.
//
// Threading: as kernel.h.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ATTENTION_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ATTENTION_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/cuda/vendor/cudnn_graph.h"
#include "worker/device/kernel.h"

namespace lockstep::device::cuda {

// At least one and at most `most` kernels, in the order in which they are preferred; one where the request has a name.
// REQUIRES: `cudnn` outlives them. An error says why cuDNN cannot serve the node.
absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> MakeCudnnAttention(const Cudnn& cudnn,
                                                                        const KernelRequest& request, int most = 1);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ATTENTION_H_
