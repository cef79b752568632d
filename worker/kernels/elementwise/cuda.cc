// Functions of one number, scaling and dropout.
#include "common/math/erf.h"
#include "common/math/inverse_formula.h"
#include "common/math/math.h"
#include "common/math/rounding.h"
#include "common/math/trigonometry_formula.h"
#include "common/random/random.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/activation/activation.h"
#include "worker/kernels/arithmetic/arithmetic.h"
#include "worker/kernels/cuda/element_types.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/map.h"

namespace lockstep::device::cuda {
namespace {

#define LS_FORMULA(Name, expression)                     \
  template <typename T>                                  \
  struct Name {                                          \
    explicit Name(const DeviceCall&) {}                  \
    LS_HD T operator()(T x) const { return expression; } \
  };

LS_FORMULA(NegOp, Neg(x))
LS_FORMULA(AbsOp, Abs(x))
LS_FORMULA(SignOp, Sign(x))
LS_FORMULA(ReciprocalOp, T(1) / x)
LS_FORMULA(SqrtOp, SquareRoot(x))
LS_FORMULA(ExpOp, Exp(x))
LS_FORMULA(LogOp, Log(x))
LS_FORMULA(ErfOp, Erf(x))
LS_FORMULA(SinOp, static_cast<T>(SinOf(x)))
LS_FORMULA(CosOp, static_cast<T>(CosOf(x)))
LS_FORMULA(TanOp, static_cast<T>(TanOf(x)))
LS_FORMULA(AsinOp, static_cast<T>(AsinOf(x)))
LS_FORMULA(AcosOp, static_cast<T>(AcosOf(x)))
LS_FORMULA(AtanOp, static_cast<T>(AtanOf(x)))
LS_FORMULA(SinhOp, static_cast<T>(SinhOf(x)))
LS_FORMULA(CoshOp, static_cast<T>(CoshOf(x)))
LS_FORMULA(AsinhOp, static_cast<T>(AsinhOf(x)))
LS_FORMULA(AcoshOp, static_cast<T>(AcoshOf(x)))
LS_FORMULA(AtanhOp, static_cast<T>(AtanhOf(x)))
LS_FORMULA(FloorOp, Floor(x))
LS_FORMULA(CeilOp, Ceil(x))
LS_FORMULA(RoundOp, RoundEven(x))
#undef LS_FORMULA

template <typename T>
struct ScaleOp {
  explicit ScaleOp(const DeviceCall& call) : factor(static_cast<T>(call.attrs<ScaleAttributes>().factor)) {}
  LS_HD T operator()(T x) const { return x * factor; }
  T factor;
};
// A NaN stays; a bound outside of the type is the nearest of the type.
template <typename T>
struct ClipOp {
  explicit ClipOp(const DeviceCall& call)
      : low(Convert<double, T>(call.attrs<ClipAttributes>().min)),
        high(Convert<double, T>(call.attrs<ClipAttributes>().max)) {}
  LS_HD T operator()(T x) const { return Clamp(x, low, high); }
  T low;
  T high;
};
template <typename T>
struct ErfGradOp {
  explicit ErfGradOp(const DeviceCall&) {}
  LS_HD T operator()(T dy, T x) const { return dy * T(0x1.20dd750429b6dp+0) * Exp(-x * x); }
};

#define LS_SLOPE(Name, slope)                                                     \
  template <typename T>                                                           \
  struct Name {                                                                   \
    explicit Name(const DeviceCall&) {}                                           \
    LS_HD T operator()(T dy, T x) const { return dy * static_cast<T>(slope(x)); } \
  };

LS_SLOPE(AsinGradOp, AsinSlope)
LS_SLOPE(AtanGradOp, AtanSlope)
LS_SLOPE(AsinhGradOp, AsinhSlope)
LS_SLOPE(AcoshGradOp, AcoshSlope)
LS_SLOPE(AtanhGradOp, AtanhSlope)
#undef LS_SLOPE

template <typename T>
struct DropoutGradOp {
  LS_HD T operator()(T dy, uint8_t kept) const { return kept != 0 ? dy * scale : T(0); }
  T scale;
};

struct TrueOp {
  LS_HD bool operator()() const { return true; }
};

template <typename T>
T KeptScale(const DropoutAttributes& attributes) {
  return static_cast<T>(1.0 / (1.0 - attributes.ratio));
}

// Threads take four elements at a time, which are one block of random numbers. `packed`: all addresses are packable.
template <typename T>
__global__ void DropoutKernel(int64_t count, bool packed, uint64_t stream, uint32_t threshold, Computed<T> scale,
                              const int64_t* random, const T* x, T* y, uint8_t* mask) {
  const RandomStream numbers =
      RandomStream::For(static_cast<uint64_t>(random[0]), stream, static_cast<uint64_t>(random[1]),
                        static_cast<uint32_t>(random[2]), static_cast<uint32_t>(random[3]));
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t pack = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; pack * kPack < count; pack += stride) {
    const std::array<uint32_t, 4> drawn = numbers.Block(static_cast<uint64_t>(pack));
    const int64_t first = pack * kPack;
    const bool whole = packed && first + kPack <= count;
    Pack<T, kPack> values = {};
    if (whole) values = reinterpret_cast<const Pack<T, kPack>*>(x)[pack];
    Pack<uint8_t, kPack> kept;
    LS_UNROLL
    for (int i = 0; i < kPack; ++i) {
      if (!whole && first + i < count) values.values[i] = x[first + i];
      kept.values[i] = drawn[static_cast<size_t>(i)] >= threshold ? 1 : 0;
      values.values[i] = kept.values[i] != 0 ? static_cast<Computed<T>>(values.values[i]) * scale : Computed<T>(0);
      if (!whole && first + i < count) y[first + i] = values.values[i];
      if (!whole && first + i < count && mask != nullptr) mask[first + i] = kept.values[i];
    }
    if (whole) reinterpret_cast<Pack<T, kPack>*>(y)[pack] = values;
    if (whole && mask != nullptr) reinterpret_cast<Pack<uint8_t, kPack>*>(mask)[pack] = kept;
  }
}
static_assert(kPack == 4);

// Blocks derive the stream of numbers once: few of them.
constexpr int64_t kDropoutBlocks = 1024;

template <typename T>
absl::Status DropoutTraining(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<DropoutAttributes>();
  const int64_t count = NumElements(call.out_shape(0));
  if (count == 0) return absl::OkStatus();
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  uint8_t* mask = call.out<uint8_t>(1);
  const bool packed = IsPackable(x) && IsPackable(y) && IsPackable(mask);
  return Launch(stream, {.blocks = {BlocksFor(count, kBlock * kPack, kDropoutBlocks)}, .threads = {kBlock}},
                &DropoutKernel<T>, count, packed, attributes.stream, DropThreshold(attributes.ratio),
                KeptScale<Computed<T>>(attributes), call.in<int64_t>(1), x, y, mask);
}

template <typename T>
absl::Status DropoutGrad(const DeviceCall& call, StreamHandle stream) {
  return Map(stream, NumElements(call.out_shape(0)),
             DropoutGradOp<Computed<T>>{KeptScale<Computed<T>>(call.attrs<DropoutAttributes>())}, call.out<T>(0),
             call.in<T>(0), call.in<uint8_t>(1));
}

absl::Status Identity(const DeviceCall& call, StreamHandle stream) {
  const size_t bytes =
      static_cast<size_t>(NumElements(call.out_shape(0))) * static_cast<size_t>(DTypeSize(call.output_infos[0].dtype));
  if (bytes == 0 || call.outputs[0] == call.inputs[0]) return absl::OkStatus();
  return CopyOnDevice(stream, call.outputs[0], call.inputs[0], bytes);
}

absl::Status Dropout(const DeviceCall& call, StreamHandle stream) {
  LS_RETURN_IF_ERROR(Identity(call, stream));
  bool* mask = call.out<bool>(1);
  return mask == nullptr ? absl::OkStatus() : Map(stream, NumElements(call.out_shape(1)), TrueOp(), mask);
}

template <template <typename> typename Formula>
OwnFunction Number(DType dtype) {
  return ForNumberOrBf16(dtype, []<typename T>(Type<T>) -> OwnFunction {
    return {&MapOne<T, Formula<Computed<T>>>, "map"};
  });
}
template <template <typename> typename Formula>
OwnFunction Floating(DType dtype) {
  return ForFloatingOrBf16(dtype, []<typename T>(Type<T>) -> OwnFunction {
    return {&MapOne<T, Formula<Computed<T>>>, "map"};
  });
}

template <template <typename> typename Formula>
OwnFunction Slope(DType dtype) {
  return ForFloatingOrBf16(dtype, []<typename T>(Type<T>) -> OwnFunction {
    return {&MapTwo<T, Formula<Computed<T>>>, "map"};
  });
}

OwnFunction OwnAngle(OpType op, DType dtype) {
  switch (op) {
    case OpType::kSin:
      return Floating<SinOp>(dtype);
    case OpType::kCos:
      return Floating<CosOp>(dtype);
    case OpType::kTan:
      return Floating<TanOp>(dtype);
    case OpType::kAsin:
      return Floating<AsinOp>(dtype);
    case OpType::kAcos:
      return Floating<AcosOp>(dtype);
    case OpType::kAtan:
      return Floating<AtanOp>(dtype);
    case OpType::kSinh:
      return Floating<SinhOp>(dtype);
    case OpType::kCosh:
      return Floating<CoshOp>(dtype);
    case OpType::kAsinh:
      return Floating<AsinhOp>(dtype);
    case OpType::kAcosh:
      return Floating<AcoshOp>(dtype);
    case OpType::kAtanh:
      return Floating<AtanhOp>(dtype);
    case OpType::kAsinGrad:
      return Slope<AsinGradOp>(dtype);
    case OpType::kAtanGrad:
      return Slope<AtanGradOp>(dtype);
    case OpType::kAsinhGrad:
      return Slope<AsinhGradOp>(dtype);
    case OpType::kAcoshGrad:
      return Slope<AcoshGradOp>(dtype);
    case OpType::kAtanhGrad:
      return Slope<AtanhGradOp>(dtype);
    default:
      return {};
  }
}

OwnFunction OwnDropout(OpType op, DType dtype) {
  switch (op) {
    case OpType::kDropout:
      return {&Dropout, "copy"};
    case OpType::kDropoutTraining:
      return ForFloatingOrBf16(dtype, []<typename T>(Type<T>) -> OwnFunction {
        return {&DropoutTraining<T>, "dropout"};
      });
    case OpType::kDropoutGrad:
      return ForFloatingOrBf16(dtype, []<typename T>(Type<T>) -> OwnFunction { return {&DropoutGrad<T>, "map"}; });
    default:
      return OwnAngle(op, dtype);
  }
}

OwnFunction OwnArithmetic(OpType op, DType dtype) {
  switch (op) {
    case OpType::kIdentity:
      return {&Identity, "copy"};
    case OpType::kNeg:
      return Number<NegOp>(dtype);
    case OpType::kAbs:
      return Number<AbsOp>(dtype);
    case OpType::kSign:
      return Number<SignOp>(dtype);
    case OpType::kClip:
      return Number<ClipOp>(dtype);
    case OpType::kScale:
      return Floating<ScaleOp>(dtype);
    case OpType::kErfGrad:
      return Slope<ErfGradOp>(dtype);
    default:
      return OwnDropout(op, dtype);
  }
}

}  // namespace

OwnFunction OwnElementwise(const KernelRequest& request) {
  const DType dtype = request.outputs[0].dtype;
  switch (request.node->op) {
    case OpType::kReciprocal:
      return Floating<ReciprocalOp>(dtype);
    case OpType::kSqrt:
      return Floating<SqrtOp>(dtype);
    case OpType::kExp:
      return Floating<ExpOp>(dtype);
    case OpType::kLog:
      return Floating<LogOp>(dtype);
    case OpType::kErf:
      return Floating<ErfOp>(dtype);
    case OpType::kFloor:
      return Floating<FloorOp>(dtype);
    case OpType::kCeil:
      return Floating<CeilOp>(dtype);
    case OpType::kRound:
      return Floating<RoundOp>(dtype);
    default:
      return OwnArithmetic(request.node->op, dtype);
  }
}

}  // namespace lockstep::device::cuda
