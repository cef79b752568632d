// Activations and their gradients, element by element.
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/activation/activation.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/map.h"

namespace lockstep::device::cuda {
namespace {

// What a formula reads of the call: nothing, or the two numbers of its attributes.
struct Plain {
  explicit Plain(const DeviceCall&) {}
};
struct Numbers {
  explicit Numbers(const DeviceCall& call)
      : alpha(static_cast<float>(call.attrs<ActivationAttributes>().alpha)),
        beta(static_cast<float>(call.attrs<ActivationAttributes>().beta)) {}
  float alpha;
  float beta;
};
struct Exponential {
  explicit Exponential(const DeviceCall& call) {
    const auto& attributes = call.attrs<ActivationAttributes>();
    alpha = static_cast<float>(attributes.alpha);
    if (call.op == OpType::kSelu || call.op == OpType::kSeluGrad) scale = static_cast<float>(attributes.beta);
    if (call.op == OpType::kCelu || call.op == OpType::kCeluGrad) rate = static_cast<float>(1.0 / attributes.alpha);
  }
  float alpha;
  float scale = 1;
  float rate = 1;
};
struct GeluKind {
  explicit GeluKind(const DeviceCall& call) : tanh(call.attrs<GeluAttributes>().tanh) {}
  bool tanh;
};
struct Bounds {
  explicit Bounds(const DeviceCall& call)
      : low(static_cast<float>(call.attrs<ClipAttributes>().min)),
        high(static_cast<float>(call.attrs<ClipAttributes>().max)) {}
  float low;
  float high;
};

// A formula over x, and one over dY and the value that the gradient is taken at.
#define LS_FORMULA(Name, Base, expression)                       \
  struct Name : Base {                                           \
    using Base::Base;                                            \
    LS_HD float operator()(float x) const { return expression; } \
  };
#define LS_GRADIENT(Name, Base, expression)                                \
  struct Name : Base {                                                     \
    using Base::Base;                                                      \
    LS_HD float operator()(float dy, float x) const { return expression; } \
  };

LS_FORMULA(ReluOp, Plain, x < 0.0f ? 0.0f : x)
LS_FORMULA(SigmoidOp, Plain, Sigmoid(x))
LS_FORMULA(TanhOp, Plain, Tanh(x))
LS_FORMULA(LeakyReluOp, Numbers, LeakyRelu(x, alpha))
LS_FORMULA(ExponentialOp, Exponential, ExponentialUnit(x, alpha, scale, rate))
LS_FORMULA(HardSigmoidOp, Numbers, HardSigmoid(x, alpha, beta))
LS_FORMULA(HardSwishOp, Plain, HardSwish(x))
LS_FORMULA(ThresholdedReluOp, Numbers, ThresholdedRelu(x, alpha))
LS_FORMULA(ShrinkOp, Numbers, Shrink(x, alpha, beta))
LS_FORMULA(SoftsignOp, Plain, Softsign(x))
LS_FORMULA(MishOp, Plain, Mish(x))
LS_FORMULA(GeluOp, GeluKind, tanh ? GeluTanh(x) : Gelu(x))
LS_FORMULA(SoftplusOp, Plain, Softplus(x))

LS_GRADIENT(ReluGradOp, Plain, x > 0.0f ? dy : 0.0f)
LS_GRADIENT(SigmoidGradOp, Plain, dy* x*(1.0f - x))
LS_GRADIENT(TanhGradOp, Plain, dy*(1.0f - x * x))
LS_GRADIENT(LeakyReluGradOp, Numbers, dy* LeakyReluSlope(x, alpha))
LS_GRADIENT(ExponentialGradOp, Exponential, dy* ExponentialUnitSlope(x, alpha, scale, rate))
LS_GRADIENT(HardSigmoidGradOp, Numbers, dy* HardSigmoidSlope(x, alpha, beta))
LS_GRADIENT(HardSwishGradOp, Plain, dy* HardSwishSlope(x))
LS_GRADIENT(ThresholdedReluGradOp, Numbers, dy*(x > alpha ? 1.0f : 0.0f))
LS_GRADIENT(ShrinkGradOp, Numbers, dy* ShrinkSlope(x, alpha))
LS_GRADIENT(SoftsignGradOp, Plain, dy* SoftsignSlope(x))
LS_GRADIENT(MishGradOp, Plain, dy* MishSlope(x))
LS_GRADIENT(GeluGradOp, GeluKind, dy*(tanh ? GeluTanhSlope(x) : GeluSlope(x)))
LS_GRADIENT(ClipGradOp, Bounds, x >= low && x <= high ? dy : 0.0f)

#undef LS_FORMULA
#undef LS_GRADIENT

template <typename Formula>
OwnFunction One(DType dtype) {
  return ForStoredFloat(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&MapOne<T, Formula>, "map"}; });
}
template <typename Formula>
OwnFunction Two(DType dtype) {
  return ForStoredFloat(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&MapTwo<T, Formula>, "map"}; });
}

OwnFunction OwnActivationGradient(OpType op, DType dtype) {
  switch (op) {
    case OpType::kReluGrad:
      return Two<ReluGradOp>(dtype);
    case OpType::kSigmoidGrad:
      return Two<SigmoidGradOp>(dtype);
    case OpType::kTanhGrad:
      return Two<TanhGradOp>(dtype);
    case OpType::kLeakyReluGrad:
      return Two<LeakyReluGradOp>(dtype);
    case OpType::kEluGrad:
    case OpType::kSeluGrad:
    case OpType::kCeluGrad:
      return Two<ExponentialGradOp>(dtype);
    case OpType::kHardSigmoidGrad:
      return Two<HardSigmoidGradOp>(dtype);
    case OpType::kHardSwishGrad:
      return Two<HardSwishGradOp>(dtype);
    case OpType::kThresholdedReluGrad:
      return Two<ThresholdedReluGradOp>(dtype);
    case OpType::kShrinkGrad:
      return Two<ShrinkGradOp>(dtype);
    case OpType::kSoftsignGrad:
      return Two<SoftsignGradOp>(dtype);
    case OpType::kMishGrad:
      return Two<MishGradOp>(dtype);
    case OpType::kGeluGrad:
      return Two<GeluGradOp>(dtype);
    case OpType::kClipGrad:
      return Two<ClipGradOp>(dtype);
    default:
      return {};
  }
}

}  // namespace

OwnFunction OwnActivation(const KernelRequest& request) {
  const DType dtype = request.outputs[0].dtype;
  switch (request.node->op) {
    case OpType::kRelu:
      return One<ReluOp>(dtype);
    case OpType::kSigmoid:
      return One<SigmoidOp>(dtype);
    case OpType::kTanh:
      return One<TanhOp>(dtype);
    case OpType::kLeakyRelu:
      return One<LeakyReluOp>(dtype);
    case OpType::kElu:
    case OpType::kSelu:
    case OpType::kCelu:
      return One<ExponentialOp>(dtype);
    case OpType::kHardSigmoid:
      return One<HardSigmoidOp>(dtype);
    case OpType::kHardSwish:
      return One<HardSwishOp>(dtype);
    case OpType::kThresholdedRelu:
      return One<ThresholdedReluOp>(dtype);
    case OpType::kShrink:
      return One<ShrinkOp>(dtype);
    case OpType::kSoftplus:
      return One<SoftplusOp>(dtype);
    case OpType::kSoftsign:
      return One<SoftsignOp>(dtype);
    case OpType::kMish:
      return One<MishOp>(dtype);
    case OpType::kGelu:
      return One<GeluOp>(dtype);
    default:
      return OwnActivationGradient(request.node->op, dtype);
  }
}

}  // namespace lockstep::device::cuda
