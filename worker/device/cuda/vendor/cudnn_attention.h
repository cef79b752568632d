// Kernels for Attention and its gradient by cuDNN, with own kernels that convert cuDNN's statistics to the op's.
//
// Threading: kernels are owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ATTENTION_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ATTENTION_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/cuda/vendor/cudnn_graph.h"
#include "worker/device/kernel.h"

namespace lockstep::device::cuda {

// Returns between one and `most` kernels in order of preference; exactly one if the request names it. An error says why
// cuDNN cannot serve the node. REQUIRES: `cudnn` outlives the kernels.
absl::StatusOr<std::vector<std::unique_ptr<Kernel>>> MakeCudnnAttention(const Cudnn& cudnn,
                                                                        const KernelRequest& request, int most = 1);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_CUDNN_ATTENTION_H_
