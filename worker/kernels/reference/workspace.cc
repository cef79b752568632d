#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

int64_t Doubles(const KernelRequest& request) {
  const auto elements = [](const Operand& operand) { return NumElements(operand.shape); };
  switch (request.node->op) {
    case OpType::kConv:
    case OpType::kConvTranspose:
    case OpType::kConvGradInput:
    case OpType::kConvGradWeight:
    case OpType::kMaxPoolGrad:
    case OpType::kPadGrad:
    case OpType::kGatherGrad:
    case OpType::kGatherElementsGrad:
    case OpType::kGatherNDGrad:
    case OpType::kScatterElements:
    case OpType::kScatterND:
    case OpType::kAveragePoolGrad:
    case OpType::kEinsum:
    case OpType::kEinsumGrad:
    case OpType::kResize:
    case OpType::kResizeGrad:
    case OpType::kReduceSum:
    case OpType::kReduceMean:
    case OpType::kReduceMax:
    case OpType::kReduceMin:
    case OpType::kReduceProd:
    case OpType::kReduceL1:
    case OpType::kReduceL2:
    case OpType::kReduceLogSum:
    case OpType::kReduceSumSquare:
      return elements(request.outputs[0]);
    // Two numbers for each result.
    case OpType::kReduceLogSumExp:
      return 2 * elements(request.outputs[0]);
    case OpType::kReduceGrad:
    case OpType::kLayerNormGrad:
    case OpType::kRmsNormGrad:
    case OpType::kGroupNormGrad:
      return 2 * elements(request.inputs[2]);
    case OpType::kAttention:
    case OpType::kAttentionGrad:
      return AttentionDoubles(request);
    default:
      return 0;
  }
}

}  // namespace

size_t WorkspaceBytes(const KernelRequest& request) { return static_cast<size_t>(Doubles(request)) * sizeof(double); }

}  // namespace lockstep::device::reference
