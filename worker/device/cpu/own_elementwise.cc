#include <cstring>

#include "common/math/math.h"
#include "common/random/random.h"
#include "worker/device/cpu/own_kernels.h"
#include "worker/device/cpu/parallel.h"

namespace lockstep::device::cpu {
namespace {

constexpr char kName[] = "own:elementwise";  // outlives every OwnFunction

constexpr int64_t kGrain = 16384;

// Applies op(a[i]) to every element.
template <typename Op>
void Unary(const HostCall& call, Op op) {
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  ParallelFor(call.out_elements(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = op(x[i]);
  });
}

// Both operands have the result's shape.
template <typename Op>
void Same(const HostCall& call, Op op) {
  const float* a = call.in<float>(0);
  const float* b = call.in<float>(1);
  float* y = call.out<float>(0);
  ParallelFor(call.out_elements(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = op(a[i], b[i]);
  });
}

// The second operand is one number, or one row that repeats (`period` elements).
template <typename Op>
void Periodic(const HostCall& call, Op op) {
  const float* a = call.in<float>(0);
  const float* b = call.in<float>(1);
  float* y = call.out<float>(0);
  const int64_t period = NumElements(call.in_shape(1));
  if (period == 1) {
    const float value = b[0];
    ParallelFor(call.out_elements(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = op(a[i], value);
    });
    return;
  }
  ParallelFor(call.out_elements() / period, std::max<int64_t>(1, kGrain / period), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < period; ++i) y[row * period + i] = op(a[row * period + i], b[i]);
    }
  });
}

void DropoutTraining(const HostCall& call) {
  const auto& attributes = call.attrs<DropoutAttributes>();
  const float* x = call.in<float>(0);
  const int64_t* random = call.in<int64_t>(1);
  float* y = call.out<float>(0);
  bool* mask = call.out<bool>(1);
  const uint32_t threshold = DropThreshold(attributes.ratio);
  const RandomStream stream =
      RandomStream::For(static_cast<uint64_t>(random[0]), attributes.stream, static_cast<uint64_t>(random[1]),
                        static_cast<uint32_t>(random[2]), static_cast<uint32_t>(random[3]));
  const auto scale = static_cast<float>(1.0 / (1.0 - attributes.ratio));
  const int64_t count = call.out_elements();
  // Numbers come in blocks of four.
  ParallelFor((count + 3) / 4, kGrain / 16, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const auto numbers = stream.Block(static_cast<uint64_t>(block));
      for (int64_t i = block * 4; i < std::min(count, block * 4 + 4); ++i) {
        const bool kept = numbers[static_cast<size_t>(i % 4)] >= threshold;
        if (mask != nullptr) mask[i] = kept;
        y[i] = kept ? x[i] * scale : 0.0f;
      }
    }
  });
}

void DropoutGrad(const HostCall& call) {
  const float* dy = call.in<float>(0);
  const bool* mask = call.in<bool>(1);
  float* dx = call.out<float>(0);
  const auto scale = static_cast<float>(1.0 / (1.0 - call.attrs<DropoutAttributes>().ratio));
  ParallelFor(call.out_elements(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) dx[i] = mask[i] ? dy[i] * scale : 0.0f;
  });
}

float AddOp(float a, float b) { return a + b; }
float SubOp(float a, float b) { return a - b; }
float MulOp(float a, float b) { return a * b; }

template <float (*op)(float, float)>
OwnFunction Binary(const KernelRequest& request) {
  const Shape& a = request.inputs[0].shape;
  const Shape& b = request.inputs[1].shape;
  const Shape& y = request.outputs[0].shape;
  if (a == y && b == y) {
    return {[](const HostCall& call) { Same(call, [](float p, float q) { return op(p, q); }); }, kName, true};
  }
  const bool is_suffix = b.size() <= y.size() && std::equal(b.rbegin(), b.rend(), y.rbegin());
  if (a == y && NumElements(b) > 0 && (is_suffix || NumElements(b) == 1)) {
    return {[](const HostCall& call) { Periodic(call, [](float p, float q) { return op(p, q); }); }, "own:periodic"};
  }
  return {};
}

}  // namespace

OwnFunction OwnElementwise(const KernelRequest& request) {
  switch (request.node->op) {
    case OpType::kAdd:
      return Binary<AddOp>(request);
    case OpType::kSub:
      return Binary<SubOp>(request);
    case OpType::kMul:
      return Binary<MulOp>(request);
    case OpType::kScale:
      return {[](const HostCall& call) {
                const auto factor = static_cast<float>(call.attrs<ScaleAttributes>().factor);
                Unary(call, [factor](float x) { return x * factor; });
              },
              kName, true};
    case OpType::kRelu:
      return {[](const HostCall& call) { Unary(call, [](float x) { return x < 0.0f ? 0.0f : x; }); }, kName, true};
    case OpType::kSigmoid:
      return {[](const HostCall& call) { Unary(call, [](float x) { return Sigmoid(x); }); }, kName, true};
    case OpType::kTanh:
      return {[](const HostCall& call) { Unary(call, [](float x) { return Tanh(x); }); }, kName, true};
    case OpType::kReluGrad:
      return {[](const HostCall& call) { Same(call, [](float dy, float y) { return y > 0.0f ? dy : 0.0f; }); }, kName,
              true};
    case OpType::kSigmoidGrad:
      return {[](const HostCall& call) { Same(call, [](float dy, float y) { return dy * y * (1.0f - y); }); }, kName,
              true};
    case OpType::kTanhGrad:
      return {[](const HostCall& call) { Same(call, [](float dy, float y) { return dy * (1.0f - y * y); }); }, kName,
              true};
    case OpType::kDropoutTraining:
      return {&DropoutTraining, kName};
    case OpType::kDropoutGrad:
      return {&DropoutGrad, kName};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu
