// Values whose channels lie last: [N, C, d...] as [N, d..., C], which is how a GPU's matrix units read images. A plan
// has such values where cuDNN asks for them, and own kernels keep what they compute from them as it is.
//
// Invariants
//   * A value whose elements lie alike either way is row-major: nothing is moved for a name.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_CHANNELS_LAST_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_CHANNELS_LAST_H_

#include <vector>

#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "worker/device/kernel.h"
#include "worker/kernels/cuda/row_plan.h"

namespace lockstep::device::cuda {

Layout ChannelsLast(DType dtype, const Shape& shape);
inline bool IsChannelsLast(const Operand& operand) { return operand.present && !operand.layout.row_major(); }
// [N, C, d...] to [N, d..., C]. REQUIRES: there are N and C.
Shape WithChannelsLast(const Shape& shape);

// The channels of [N, C, d...] as rows, whose elements are all that a channel has; `last`: they lie last.
RowPlan PlanChannels(const Shape& shape, bool last);

// A request as the own kernels take it: operands have the layouts in which the kernel will read and write them.
struct OwnRequest {
  KernelRequest request;
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
};

// Channels last where an input is and the node may and can keep it so: element by element, over channels, over windows.
// What works element by element sees shapes in the order of memory. Else all is row-major.
OwnRequest PlaceChannels(const KernelRequest& request);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_CHANNELS_LAST_H_
