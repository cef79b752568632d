#include "worker/kernels/cuda/own_kernels.h"

#include "worker/kernels/cuda/families.h"

namespace lockstep::device::cuda {

OwnFunction FindOwn(const KernelRequest& request) {
  for (const auto family :
       {&OwnActivation, &OwnElementwise,    &OwnProduct,   &OwnConvolution, &OwnPooling, &OwnAttention,     &OwnEinsum,
        &OwnResize,     &OwnBroadcast,      &OwnLogic,     &OwnMovement,    &OwnPadding, &OwnPlacement,     &OwnPower,
        &OwnIndexing,   &OwnBatchNorm,      &OwnGroupNorm, &OwnLayerNorm,   &OwnLoss,    &OwnPointwiseLoss, &OwnRandom,
        &OwnRanking,    &OwnReduceGradient, &OwnReduction, &OwnSoftmax}) {
    if (const OwnFunction own = family(request); own.launch != nullptr) return own;
  }
  return {};
}

}  // namespace lockstep::device::cuda
