#include "worker/kernels/activation/activation.h"
#include "worker/kernels/reference/families.h"
#include "worker/kernels/reference/loops.h"

namespace lockstep::device::reference {
namespace {

// What Elu, Selu and Celu make of their attributes.
template <typename T>
struct Exponential {
  explicit Exponential(const HostCall& call) {
    const auto& attributes = call.attrs<ActivationAttributes>();
    const bool celu = call.op == OpType::kCelu || call.op == OpType::kCeluGrad;
    const bool selu = call.op == OpType::kSelu || call.op == OpType::kSeluGrad;
    alpha = static_cast<T>(attributes.alpha);
    if (selu) scale = static_cast<T>(attributes.beta);
    if (celu) rate = static_cast<T>(1.0 / attributes.alpha);
  }
  T alpha;
  T scale = T(1);
  T rate = T(1);
};

template <typename T>
void ExponentialForward(const HostCall& call) {
  const Exponential<T> e(call);
  Unary<T>(call, [&](T x) { return ExponentialUnit(x, e.alpha, e.scale, e.rate); });
}

template <typename T>
void ExponentialGrad(const HostCall& call) {
  const Exponential<T> e(call);
  Gradient<T>(call, [&](T dy, T x) { return dy * ExponentialUnitSlope(x, e.alpha, e.scale, e.rate); });
}

// Y = op(X, alpha, beta) and dX = dY * slope(X, alpha, beta).
template <typename T, typename Op>
void WithNumbers(const HostCall& call, Op op) {
  const auto& attributes = call.attrs<ActivationAttributes>();
  const T alpha = static_cast<T>(attributes.alpha);
  const T beta = static_cast<T>(attributes.beta);
  Unary<T>(call, [&](T x) { return op(x, alpha, beta); });
}

template <typename T, typename Op>
void GradientWithNumbers(const HostCall& call, Op slope) {
  const auto& attributes = call.attrs<ActivationAttributes>();
  const T alpha = static_cast<T>(attributes.alpha);
  const T beta = static_cast<T>(attributes.beta);
  Gradient<T>(call, [&](T dy, T x) { return dy * slope(x, alpha, beta); });
}

template <typename T>
void GeluForward(const HostCall& call) {
  const bool tanh = call.attrs<GeluAttributes>().tanh;
  Unary<T>(call, [tanh](T x) { return tanh ? GeluTanh(x) : Gelu(x); });
}

template <typename T>
void GeluGrad(const HostCall& call) {
  const bool tanh = call.attrs<GeluAttributes>().tanh;
  Gradient<T>(call, [tanh](T dy, T x) { return dy * (tanh ? GeluTanhSlope(x) : GeluSlope(x)); });
}

template <typename T>
void ClipGrad(const HostCall& call) {
  const auto& clip = call.attrs<ClipAttributes>();
  const T low = static_cast<T>(clip.min);
  const T high = static_cast<T>(clip.max);
  Gradient<T>(call, [&](T dy, T x) { return x >= low && x <= high ? dy : T(0); });
}

template <typename T>
void PReluGrad(const HostCall& call) {
  const T* dy = call.in<T>(0);
  const T* x = call.in<T>(1);
  const int64_t count = NumElements(call.out_shape(0));
  BroadcastCursor of_slope(call.out_shape(0), call.in_shape(2));
  for (int64_t i = 0; i < count; ++i, of_slope.Next()) {
    const T gradient = dy[i];
    const T at = x[i];
    call.out<T>(0)[i] = at > T(0) ? gradient : gradient * call.in<T>(2)[of_slope.index()];
    if (T* slope = call.out<T>(1); slope != nullptr) slope[i] = at > T(0) ? T(0) : gradient * at;
  }
}

template <typename T>
HostFunction GradientFunction(OpType type) {
  switch (type) {
    case OpType::kReluGrad:
      return [](const HostCall& call) { Gradient<T>(call, [](T dy, T y) { return y > T(0) ? dy : T(0); }); };
    case OpType::kSigmoidGrad:
      return [](const HostCall& call) { Gradient<T>(call, [](T dy, T y) { return dy * y * (T(1) - y); }); };
    case OpType::kTanhGrad:
      return [](const HostCall& call) { Gradient<T>(call, [](T dy, T y) { return dy * (T(1) - y * y); }); };
    case OpType::kLeakyReluGrad:
      return [](const HostCall& call) {
        GradientWithNumbers<T>(call, [](T x, T alpha, T) { return LeakyReluSlope(x, alpha); });
      };
    case OpType::kPReluGrad:
      return &PReluGrad<T>;
    case OpType::kEluGrad:
    case OpType::kSeluGrad:
    case OpType::kCeluGrad:
      return &ExponentialGrad<T>;
    case OpType::kHardSigmoidGrad:
      return [](const HostCall& call) {
        GradientWithNumbers<T>(call, [](T x, T alpha, T beta) { return HardSigmoidSlope(x, alpha, beta); });
      };
    case OpType::kHardSwishGrad:
      return [](const HostCall& call) { Gradient<T>(call, [](T dy, T x) { return dy * HardSwishSlope(x); }); };
    case OpType::kThresholdedReluGrad:
      return [](const HostCall& call) {
        GradientWithNumbers<T>(call, [](T x, T alpha, T) { return x > alpha ? T(1) : T(0); });
      };
    case OpType::kShrinkGrad:
      return [](const HostCall& call) {
        GradientWithNumbers<T>(call, [](T x, T edge, T) { return ShrinkSlope(x, edge); });
      };
    case OpType::kSoftsignGrad:
      return [](const HostCall& call) { Gradient<T>(call, [](T dy, T x) { return dy * SoftsignSlope(x); }); };
    case OpType::kMishGrad:
      return [](const HostCall& call) { Gradient<T>(call, [](T dy, T x) { return dy * MishSlope(x); }); };
    case OpType::kGeluGrad:
      return &GeluGrad<T>;
    case OpType::kClipGrad:
      return &ClipGrad<T>;
    default:
      return nullptr;
  }
}

}  // namespace

template <typename T>
HostFunction ActivationFunction(OpType type) {
  switch (type) {
    case OpType::kRelu:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return x < T(0) ? T(0) : x; }); };
    case OpType::kSigmoid:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Sigmoid(x); }); };
    case OpType::kTanh:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Tanh(x); }); };
    case OpType::kLeakyRelu:
      return [](const HostCall& call) { WithNumbers<T>(call, [](T x, T alpha, T) { return LeakyRelu(x, alpha); }); };
    case OpType::kPRelu:
      return [](const HostCall& call) { Binary<T>(call, [](T x, T slope) { return LeakyRelu(x, slope); }); };
    case OpType::kElu:
    case OpType::kSelu:
    case OpType::kCelu:
      return &ExponentialForward<T>;
    case OpType::kHardSigmoid:
      return [](const HostCall& call) {
        WithNumbers<T>(call, [](T x, T alpha, T beta) { return HardSigmoid(x, alpha, beta); });
      };
    case OpType::kHardSwish:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return HardSwish(x); }); };
    case OpType::kThresholdedRelu:
      return
          [](const HostCall& call) { WithNumbers<T>(call, [](T x, T alpha, T) { return ThresholdedRelu(x, alpha); }); };
    case OpType::kShrink:
      return
          [](const HostCall& call) { WithNumbers<T>(call, [](T x, T edge, T bias) { return Shrink(x, edge, bias); }); };
    case OpType::kSoftplus:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Softplus(x); }); };
    case OpType::kSoftsign:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Softsign(x); }); };
    case OpType::kMish:
      return [](const HostCall& call) { Unary<T>(call, [](T x) { return Mish(x); }); };
    case OpType::kGelu:
      return &GeluForward<T>;
    default:
      return GradientFunction<T>(type);
  }
}

template HostFunction ActivationFunction<float>(OpType);
template HostFunction ActivationFunction<double>(OpType);

}  // namespace lockstep::device::reference
