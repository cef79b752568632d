// Scaling.
#include "worker/device/cuda/code.h"
#include "worker/device/cuda/map.h"
#include "worker/device/cuda/own_families.h"

namespace lockstep::device::cuda {
namespace {

struct ScaleOp {
  explicit ScaleOp(const DeviceCall& call) : factor(static_cast<float>(call.attrs<ScaleAttributes>().factor)) {}
  LS_HD float operator()(float x) const { return x * factor; }
  float factor;
};

}  // namespace

OwnFunction OwnElementwise(const KernelRequest& request) {
  if (request.outputs[0].dtype != DType::kF32) return {};
  switch (request.node->op) {
    case OpType::kScale:
      return {&MapOne<float, ScaleOp>, "map"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cuda
