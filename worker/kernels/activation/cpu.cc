#include "common/math/erf.h"
#include "common/math/math.h"
#include "worker/kernels/activation/activation.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/own_loops.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr char kName[] = "own:elementwise";

float AlphaOf(const HostCall& call) { return static_cast<float>(call.attrs<ActivationAttributes>().alpha); }

void LeakyReluForward(const HostCall& call) {
  const float slope = AlphaOf(call);
  Unary(call, [slope](float x) { return LeakyRelu(x, slope); });
}

void LeakyReluGrad(const HostCall& call) {
  const float slope = AlphaOf(call);
  Same(call, [slope](float dy, float x) { return dy * LeakyReluSlope(x, slope); });
}

void ShrinkForward(const HostCall& call) {
  const auto& attributes = call.attrs<ActivationAttributes>();
  const auto edge = static_cast<float>(attributes.alpha);
  const auto bias = static_cast<float>(attributes.beta);
  Unary(call, [edge, bias](float x) { return Shrink(x, edge, bias); });
}

void ShrinkGrad(const HostCall& call) {
  const float edge = AlphaOf(call);
  Same(call, [edge](float dy, float x) { return dy * ShrinkSlope(x, edge); });
}

// Y = op(X, alpha, beta) and dX = dY * slope(X, alpha, beta).
template <typename Op>
void WithNumbers(const HostCall& call, Op op) {
  const auto& attributes = call.attrs<ActivationAttributes>();
  const auto alpha = static_cast<float>(attributes.alpha);
  const auto beta = static_cast<float>(attributes.beta);
  Unary(call, [alpha, beta, op](float x) { return op(x, alpha, beta); });
}

template <typename Op>
void GradientWithNumbers(const HostCall& call, Op slope) {
  const auto& attributes = call.attrs<ActivationAttributes>();
  const auto alpha = static_cast<float>(attributes.alpha);
  const auto beta = static_cast<float>(attributes.beta);
  Same(call, [alpha, beta, slope](float dy, float x) { return dy * slope(x, alpha, beta); });
}

// What Elu, Selu and Celu make of their attributes.
struct Exponential {
  explicit Exponential(const HostCall& call) {
    const auto& attributes = call.attrs<ActivationAttributes>();
    alpha = static_cast<float>(attributes.alpha);
    if (call.op == OpType::kSelu || call.op == OpType::kSeluGrad) scale = static_cast<float>(attributes.beta);
    if (call.op == OpType::kCelu || call.op == OpType::kCeluGrad) rate = static_cast<float>(1.0 / attributes.alpha);
  }
  float alpha;
  float scale = 1;
  float rate = 1;
};

void ExponentialForward(const HostCall& call) {
  const Exponential e(call);
  Unary(call, [e](float x) { return ExponentialUnit(x, e.alpha, e.scale, e.rate); });
}

void ExponentialGrad(const HostCall& call) {
  const Exponential e(call);
  Same(call, [e](float dy, float x) { return dy * ExponentialUnitSlope(x, e.alpha, e.scale, e.rate); });
}

void Clip(const HostCall& call) {
  const auto low = static_cast<float>(call.attrs<ClipAttributes>().min);
  const auto high = static_cast<float>(call.attrs<ClipAttributes>().max);
  Unary(call, [low, high](float x) { return Clamp(x, low, high); });
}

void ClipGrad(const HostCall& call) {
  const auto low = static_cast<float>(call.attrs<ClipAttributes>().min);
  const auto high = static_cast<float>(call.attrs<ClipAttributes>().max);
  Same(call, [low, high](float dy, float x) {
    const float above = x >= low ? dy : 0.0f;
    return x <= high ? above : 0.0f;
  });
}

void GeluForward(const HostCall& call) {
  if (call.attrs<GeluAttributes>().tanh) {
    Unary(call, [](float x) { return GeluTanh(x); });
  } else {
    Unary(call, [](float x) { return Gelu(x); });
  }
}

void GeluGrad(const HostCall& call) {
  if (call.attrs<GeluAttributes>().tanh) {
    Same(call, [](float dy, float x) { return dy * GeluTanhSlope(x); });
  } else {
    Same(call, [](float dy, float x) { return dy * GeluSlope(x); });
  }
}

HostFunction Rarer(OpType op) {
  switch (op) {
    case OpType::kElu:
    case OpType::kSelu:
    case OpType::kCelu:
      return &ExponentialForward;
    case OpType::kHardSigmoid:
      return [](const HostCall& call) {
        WithNumbers(call, [](float x, float alpha, float beta) { return HardSigmoid(x, alpha, beta); });
      };
    case OpType::kThresholdedRelu:
      return [](const HostCall& call) {
        WithNumbers(call, [](float x, float alpha, float) { return ThresholdedRelu(x, alpha); });
      };
    case OpType::kSoftplus:
      return [](const HostCall& call) { Unary(call, [](float x) { return Softplus(x); }); };
    case OpType::kSoftsign:
      return [](const HostCall& call) { Unary(call, [](float x) { return Softsign(x); }); };
    case OpType::kMish:
      return [](const HostCall& call) { Unary(call, [](float x) { return Mish(x); }); };
    default:
      return nullptr;
  }
}

HostFunction RarerGrad(OpType op) {
  switch (op) {
    case OpType::kEluGrad:
    case OpType::kSeluGrad:
    case OpType::kCeluGrad:
      return &ExponentialGrad;
    case OpType::kHardSigmoidGrad:
      return [](const HostCall& call) {
        GradientWithNumbers(call, [](float x, float alpha, float beta) { return HardSigmoidSlope(x, alpha, beta); });
      };
    case OpType::kThresholdedReluGrad:
      return [](const HostCall& call) {
        GradientWithNumbers(call, [](float x, float alpha, float) { return x > alpha ? 1.0f : 0.0f; });
      };
    case OpType::kSoftsignGrad:
      return [](const HostCall& call) { Same(call, [](float dy, float x) { return dy * SoftsignSlope(x); }); };
    case OpType::kMishGrad:
      return [](const HostCall& call) { Same(call, [](float dy, float x) { return dy * MishSlope(x); }); };
    default:
      return nullptr;
  }
}

HostFunction Forward(OpType op) {
  switch (op) {
    case OpType::kRelu:
      return [](const HostCall& call) { Unary(call, [](float x) { return x < 0.0f ? 0.0f : x; }); };
    case OpType::kSigmoid:
      return [](const HostCall& call) { Unary(call, [](float x) { return Sigmoid(x); }); };
    case OpType::kTanh:
      return [](const HostCall& call) { Unary(call, [](float x) { return Tanh(x); }); };
    case OpType::kNeg:
      return [](const HostCall& call) { Unary(call, [](float x) { return -x; }); };
    case OpType::kAbs:
      return [](const HostCall& call) { Unary(call, [](float x) { return CopySign(x, 1.0f); }); };
    case OpType::kReciprocal:
      return [](const HostCall& call) { Unary(call, [](float x) { return 1.0f / x; }); };
    case OpType::kSqrt:
      return [](const HostCall& call) { Unary(call, [](float x) { return SquareRoot(x); }); };
    case OpType::kExp:
      return [](const HostCall& call) { Unary(call, [](float x) { return Exp(x); }); };
    case OpType::kLog:
      return [](const HostCall& call) { Unary(call, [](float x) { return Log(x); }); };
    case OpType::kErf:
      return [](const HostCall& call) { Unary(call, [](float x) { return Erf(x); }); };
    case OpType::kHardSwish:
      return [](const HostCall& call) { Unary(call, [](float x) { return HardSwish(x); }); };
    case OpType::kLeakyRelu:
      return &LeakyReluForward;
    case OpType::kShrink:
      return &ShrinkForward;
    case OpType::kGelu:
      return &GeluForward;
    case OpType::kClip:
      return &Clip;
    default:
      return Rarer(op);
  }
}

HostFunction Backward(OpType op) {
  switch (op) {
    case OpType::kReluGrad:
      return [](const HostCall& call) { Same(call, [](float dy, float y) { return y > 0.0f ? dy : 0.0f; }); };
    case OpType::kSigmoidGrad:
      return [](const HostCall& call) { Same(call, [](float dy, float y) { return dy * y * (1.0f - y); }); };
    case OpType::kTanhGrad:
      return [](const HostCall& call) { Same(call, [](float dy, float y) { return dy * (1.0f - y * y); }); };
    case OpType::kErfGrad:
      return
          [](const HostCall& call) { Same(call, [](float dy, float x) { return dy * 0x1.20dd76p+0f * Exp(-x * x); }); };
    case OpType::kHardSwishGrad:
      return [](const HostCall& call) { Same(call, [](float dy, float x) { return dy * HardSwishSlope(x); }); };
    case OpType::kLeakyReluGrad:
      return &LeakyReluGrad;
    case OpType::kShrinkGrad:
      return &ShrinkGrad;
    case OpType::kGeluGrad:
      return &GeluGrad;
    case OpType::kClipGrad:
      return &ClipGrad;
    default:
      return RarerGrad(op);
  }
}

}  // namespace

OwnFunction OwnActivation(const KernelRequest& request) {
  HostFunction function = Forward(request.node->op);
  if (function == nullptr) function = Backward(request.node->op);
  if (function == nullptr) return {};
  // The padding of a blocked value is zero, whose logarithm and reciprocal are no numbers to go on with.
  const bool any_layout = request.node->op != OpType::kLog && request.node->op != OpType::kReciprocal;
  return {function, kName, any_layout};
}

}  // namespace lockstep::device::cpu::LS_CODE
