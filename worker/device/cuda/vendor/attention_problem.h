// Attention or its gradient as cuDNN takes it, from what a plan asks. Pure, so that every reason against a node is
// known without a GPU.
//
// Operands are [samples, heads, length, size] with strides of any order, so that all orders of Attention's operands are
// served in place. A gradient whose sums have a fixed order takes scratch of queries x keys: what a limit does not
// allow for the whole batch is done for a part of its samples at a time. Samples do not meet, so bits do not depend on
// that.
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

// Scratch that one node may take of cuDNN.
inline constexpr int64_t kCudnnWorkspaceLimit = int64_t{256} << 20;

// The elements of one launch. The launches' operands follow each other by `sample` of them.
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
  // Forward: whether the rows' largest scores and sums are results.
  bool statistics = false;
  // Q, K and V are one operand, and so are their gradients.
  bool packed = false;
  int64_t samples = 0;  // per launch
  int64_t launches = 1;
  AttentionOperand q, k, v, y;
  // [samples, heads, queries, 1], dense.
  AttentionOperand rows;
};

// The same for problems of which one plan of cuDNN serves both.
std::string KeyOf(const AttentionProblem& problem);

// Unimplemented with the reason where cuDNN does not serve the node. REQUIRES: Attention or AttentionGrad.
absl::StatusOr<AttentionProblem> DescribeAttention(const KernelRequest& request, int64_t workspace_limit);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_VENDOR_ATTENTION_PROBLEM_H_
