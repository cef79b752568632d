// Channels-last layout: [N, C, d...] stored as [N, d..., C], the layout in which tensor cores read images. Plans
// contain such values where cuDNN asks for them, and own kernels pass the layout on to their results.
//
// Invariants
//   * A value whose elements are in the same order in both layouts counts as row-major, so that it is never reordered.
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
// [N, C, d...] to [N, d..., C]. REQUIRES: rank >= 2.
Shape WithChannelsLast(const Shape& shape);

// The rows are the channels of [N, C, d...], with all elements of a channel; `last`: the value is channels-last.
RowPlan PlanChannels(const Shape& shape, bool last);

// A request for an own kernel, with the layouts in which the kernel will read its inputs and write its outputs.
struct OwnRequest {
  KernelRequest request;
  std::vector<Layout> inputs;
  std::vector<Layout> outputs;
};

// Chooses channels-last layouts if an input has that layout, the request allows it, and the op is element-wise or works
// on channels or windows; else all operands are row-major. An element-wise op gets shapes in memory order.
OwnRequest PlaceChannels(const KernelRequest& request);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_CHANNELS_LAST_H_
