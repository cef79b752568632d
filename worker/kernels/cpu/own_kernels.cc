#include "worker/kernels/cpu/own_kernels.h"

#include "worker/kernels/cpu/families.h"

namespace lockstep::device::cpu::LS_CODE {

OwnFunction FindOwn(const KernelRequest& request) {
  // The first operand of Where is the condition.
  const size_t first = request.node->op == OpType::kWhere ? 1 : 0;
  // Of several element types.
  for (const auto family :
       {&OwnLogic, &OwnIntegers, &OwnIntegerSum, &OwnMovement, &OwnGather, &OwnBlocks, &OwnRanking}) {
    if (const OwnFunction own = family(request); own.function != nullptr) return own;
  }
  if (request.outputs[0].dtype != DType::kF32) return {};
  for (const auto family : {&OwnPlacement, &OwnRandom}) {
    if (const OwnFunction own = family(request); own.function != nullptr) return own;
  }
  if (request.inputs[first].dtype != DType::kF32) return {};
  for (const auto family : {&OwnElementwise, &OwnMath, &OwnActivation, &OwnBroadcast, &OwnPower, &OwnPooling,
                            &OwnBatchNorm, &OwnReduction, &OwnReductionGrad, &OwnIndexing, &OwnLoss, &OwnPadding,
                            &OwnResize, &OwnLayerNorm, &OwnGroupNorm, &OwnLpNorm, &OwnSoftmax, &OwnAttention}) {
    if (const OwnFunction own = family(request); own.function != nullptr) return own;
  }
  return {};
}

}  // namespace lockstep::device::cpu::LS_CODE
