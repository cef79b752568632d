// Translates a node of Attention or AttentionGrad to cuDNN's terms. Pure, so that refusals can be tested without a GPU.
//
// Operands are [samples, heads, length, size] with arbitrary strides, so that all operand orders of Attention are
// served in place. A deterministic gradient needs scratch of queries x keys elements per sample and head; if the whole
// batch exceeds the limit, it is computed for a part of the samples at a time. Samples are independent, so the bits do
// not depend on the partition.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_ATTENTION_PROBLEM_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_ATTENTION_PROBLEM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/shape.h"
#include "worker/device/kernel.h"

namespace lockstep::device::cuda {

// The limit of cuDNN's scratch for one node.
inline constexpr int64_t kCudnnWorkspaceLimit = int64_t{256} << 20;

// An operand of one launch, in elements. The next launch's operand begins samples * sample() elements further.
struct AttentionOperand {
  Shape dims;
  std::vector<int64_t> strides;
  int64_t offset = 0;

  int64_t sample() const { return strides[0]; }
};

struct AttentionProblem {
  bool backward = false;
  bool causal = false;
  float scale = 1;
  // Forward: the rows' largest scores and sums are outputs too.
  bool statistics = false;
  // Q, K and V are one operand, and so are their gradients.
  bool packed = false;
  int64_t samples = 0;  // per launch
  int64_t launches = 1;
  AttentionOperand q, k, v, y;
  // [samples, heads, queries, 1], dense.
  AttentionOperand rows;
};

// Equal keys mean that one cuDNN plan serves both problems.
std::string KeyOf(const AttentionProblem& problem);

// Unimplemented with the reason when cuDNN cannot serve the node. REQUIRES: Attention or AttentionGrad.
absl::StatusOr<AttentionProblem> DescribeAttention(const KernelRequest& request, int64_t workspace_limit);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_ATTENTION_PROBLEM_H_
