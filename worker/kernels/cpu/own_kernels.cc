#include "worker/kernels/cpu/own_kernels.h"

#include "worker/kernels/cpu/families.h"

namespace lockstep::device::cpu::LS_CODE {

OwnFunction FindOwn(const KernelRequest& request) {
  // The first operand of Where is the condition.
  const size_t first = request.node->op == OpType::kWhere ? 1 : 0;
  // Its results are bools, or were.
  if (const OwnFunction logic = OwnLogic(request); logic.function != nullptr) return logic;
  if (request.outputs[0].dtype != DType::kF32) return {};
  if (const OwnFunction random = OwnRandom(request); random.function != nullptr) return random;
  if (request.inputs[first].dtype != DType::kF32) return {};
  for (const auto family :
       {&OwnElementwise, &OwnActivation, &OwnBroadcast, &OwnPower, &OwnPooling, &OwnBatchNorm, &OwnReduction,
        &OwnMovement, &OwnPadding, &OwnResize, &OwnLayerNorm, &OwnGroupNorm, &OwnSoftmax, &OwnAttention}) {
    if (const OwnFunction own = family(request); own.function != nullptr) return own;
  }
  return {};
}

}  // namespace lockstep::device::cpu::LS_CODE
