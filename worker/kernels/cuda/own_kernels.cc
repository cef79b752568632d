#include "worker/kernels/cuda/own_kernels.h"

#include "worker/kernels/cuda/families.h"

namespace lockstep::device::cuda {

OwnFunction FindOwn(const KernelRequest& request) {
  OwnFunction none;
  for (const auto family :
       {&OwnActivation, &OwnElementwise,    &OwnProduct,   &OwnConvolution, &OwnPooling, &OwnAttention,     &OwnEinsum,
        &OwnResize,     &OwnBroadcast,      &OwnLogic,     &OwnMovement,    &OwnPadding, &OwnPlacement,     &OwnPower,
        &OwnIndexing,   &OwnBatchNorm,      &OwnGroupNorm, &OwnLayerNorm,   &OwnLoss,    &OwnPointwiseLoss, &OwnRandom,
        &OwnRanking,    &OwnReduceGradient, &OwnReduction, &OwnSoftmax}) {
    const OwnFunction own = family(request);
    if (own.launch != nullptr) return own;
    if (none.refusal == nullptr) none.refusal = own.refusal;
  }
  return none;
}

}  // namespace lockstep::device::cuda
