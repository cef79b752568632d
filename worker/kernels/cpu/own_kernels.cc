#include "worker/kernels/cpu/own_kernels.h"

#include <initializer_list>

#include "worker/kernels/cpu/families.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

using Family = OwnFunction (*)(const KernelRequest& request);

// Asks the families in turn until one has a function. `serves_type`: they serve the request's element type; else they
// only say whether the op is theirs. `own` keeps the first refusal.
bool Ask(std::initializer_list<Family> families, const KernelRequest& request, bool serves_type, OwnFunction* own) {
  for (const Family family : families) {
    OwnFunction answer = family(request);
    if (answer.function != nullptr && !serves_type) answer = {.refusal = kOtherType};
    if (answer.function != nullptr) {
      *own = answer;
      return true;
    }
    if (own->refusal == nullptr) own->refusal = answer.refusal;
  }
  return false;
}

}  // namespace

OwnFunction FindOwn(const KernelRequest& request) {
  OwnFunction own;
  if (Ask({&OwnLogic, &OwnIntegers, &OwnIntegerSum, &OwnMovement, &OwnGather, &OwnBlocks, &OwnRanking}, request, true,
          &own)) {
    return own;
  }
  const bool makes_floats = request.outputs[0].dtype == DType::kF32;
  if (Ask({&OwnPlacement, &OwnRandom}, request, makes_floats, &own)) return own;
  // The first operand of Where is the condition.
  const size_t first = request.node->op == OpType::kWhere ? 1 : 0;
  const bool reads_floats = request.inputs.size() > first && request.inputs[first].dtype == DType::kF32;
  Ask({&OwnElementwise, &OwnMath, &OwnActivation, &OwnBroadcast, &OwnPower, &OwnPooling, &OwnBatchNorm, &OwnReduction,
       &OwnReductionGrad, &OwnIndexing, &OwnLoss, &OwnPadding, &OwnResize, &OwnLayerNorm, &OwnGroupNorm, &OwnLpNorm,
       &OwnSoftmax, &OwnAttention, &OwnConvolution},
      request, makes_floats && reads_floats, &own);
  return own;
}

}  // namespace lockstep::device::cpu::LS_CODE
