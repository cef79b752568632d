#include "common/math/math.h"
#include "worker/kernels/batch_norm/cpu_blocked.h"
#include "worker/kernels/batch_norm/cpu_columns.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/parallel.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

// X as [batch, channels, plane]; sums of a channel run over planes in order, within a plane in eight lanes.
struct Extents {
  explicit Extents(const Shape& x) : batch(x[0]), channels(x[1]), plane(1) {
    for (size_t i = 2; i < x.size(); ++i) plane *= x[i];
  }
  int64_t batch;
  int64_t channels;
  int64_t plane;

  int64_t offset(int64_t n, int64_t channel) const { return (n * channels + channel) * plane; }
};

// y = x * factor + shift per channel.
void Normalise(const HostCall& call, const Extents& e, int64_t c, double mean, double inv_std) {
  const auto factor = static_cast<float>(inv_std * call.in<float>(1)[c]);
  const float shift = call.in<float>(2)[c];
  const auto middle = static_cast<float>(mean);
  for (int64_t n = 0; n < e.batch; ++n) {
    const float* x = call.in<float>(0) + e.offset(n, c);
    float* y = call.out<float>(0) + e.offset(n, c);
    for (int64_t i = 0; i < e.plane; ++i) y[i] = (x[i] - middle) * factor + shift;
  }
}

void Inference(const HostCall& call) {
  const Extents e(call.in_shape(0));
  if (e.plane == 1) return ColumnsInference(call);
  const double epsilon = call.attrs<BatchNormAttributes>().epsilon;
  ParallelFor(e.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      Normalise(call, e, c, call.in<float>(3)[c], 1.0 / SquareRoot(double{call.in<float>(4)[c]} + epsilon));
    }
  });
}

void TrainChannel(const HostCall& call, const Extents& e, int64_t c) {
  const auto& attributes = call.attrs<BatchNormAttributes>();
  const auto count = static_cast<double>(e.batch * e.plane);
  double sum = 0;
  for (int64_t n = 0; n < e.batch; ++n) {
    const float* x = call.in<float>(0) + e.offset(n, c);
    sum += LaneSum(e.plane, [x](int64_t i) { return double{x[i]}; });
  }
  const double mean = sum / count;
  double squares = 0;
  for (int64_t n = 0; n < e.batch; ++n) {
    const float* x = call.in<float>(0) + e.offset(n, c);
    squares += LaneSum(e.plane, [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  }
  const double inv_std = 1.0 / SquareRoot(squares / count + attributes.epsilon);
  Normalise(call, e, c, mean, inv_std);
  const bool unbiased = attributes.unbiased_running_var && count > 1;
  if (call.out<float>(1) != nullptr) call.out<float>(1)[c] = static_cast<float>(mean);
  if (call.out<float>(2) != nullptr) call.out<float>(2)[c] = static_cast<float>(inv_std);
  if (call.out<float>(3) != nullptr) {
    call.out<float>(3)[c] = static_cast<float>(squares / (unbiased ? count - 1 : count));
  }
}

void Training(const HostCall& call) {
  if (call.input_infos[0].layout.channel_block != 0) return BlockedTraining(call);
  const Extents e(call.in_shape(0));
  if (e.plane == 1) return ColumnsTraining(call);
  ParallelFor(e.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) TrainChannel(call, e, c);
  });
}

// dX = scale * inv_std * (dY - sum(dY) / n - xhat * sum(dY * xhat) / n), xhat = (x - mean) * inv_std.
void GradientChannel(const HostCall& call, const Extents& e, int64_t c) {
  const auto count = static_cast<double>(e.batch * e.plane);
  const float mean = call.in<float>(3)[c];
  const float inv_std = call.in<float>(4)[c];
  double sum = 0;
  double dot = 0;
  for (int64_t n = 0; n < e.batch; ++n) {
    const float* dy = call.in<float>(0) + e.offset(n, c);
    const float* x = call.in<float>(1) + e.offset(n, c);
    sum += LaneSum(e.plane, [dy](int64_t i) { return double{dy[i]}; });
    dot += LaneSum(e.plane, [=](int64_t i) { return double{dy[i]} * (double{x[i]} - mean) * inv_std; });
  }
  if (call.out<float>(1) != nullptr) call.out<float>(1)[c] = static_cast<float>(dot);
  if (call.out<float>(2) != nullptr) call.out<float>(2)[c] = static_cast<float>(sum);
  if (call.out<float>(0) == nullptr) return;
  const float factor = call.in<float>(2)[c] * inv_std;
  const auto mean_dy = static_cast<float>(sum / count);
  const auto slope = static_cast<float>(dot / count * inv_std);
  for (int64_t n = 0; n < e.batch; ++n) {
    const float* dy = call.in<float>(0) + e.offset(n, c);
    const float* x = call.in<float>(1) + e.offset(n, c);
    float* dx = call.out<float>(0) + e.offset(n, c);
    for (int64_t i = 0; i < e.plane; ++i) dx[i] = factor * (dy[i] - mean_dy - (x[i] - mean) * slope);
  }
}

void Gradient(const HostCall& call) {
  if (call.input_infos[0].layout.channel_block != 0) return BlockedGradient(call);
  const Extents e(call.in_shape(0));
  if (e.plane == 1) return ColumnsGradient(call);
  ParallelFor(e.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) GradientChannel(call, e, c);
  });
}

// dX = dY * scale * inv_std, dScale = sum(dY * xhat), dBias = sum(dY).
void FrozenChannel(const HostCall& call, const Extents& e, int64_t c) {
  const float mean = call.in<float>(3)[c];
  const double inv_std = 1.0 / SquareRoot(double{call.in<float>(4)[c]} + call.attrs<BatchNormAttributes>().epsilon);
  const auto factor = static_cast<float>(call.in<float>(2)[c] * inv_std);
  double sum = 0;
  double dot = 0;
  for (int64_t n = 0; n < e.batch; ++n) {
    const float* dy = call.in<float>(0) + e.offset(n, c);
    const float* x = call.in<float>(1) + e.offset(n, c);
    sum += LaneSum(e.plane, [dy](int64_t i) { return double{dy[i]}; });
    dot += LaneSum(e.plane, [=](int64_t i) { return double{dy[i]} * (double{x[i]} - mean) * inv_std; });
    if (call.out<float>(0) == nullptr) continue;
    float* dx = call.out<float>(0) + e.offset(n, c);
    for (int64_t i = 0; i < e.plane; ++i) dx[i] = dy[i] * factor;
  }
  if (call.out<float>(1) != nullptr) call.out<float>(1)[c] = static_cast<float>(dot);
  if (call.out<float>(2) != nullptr) call.out<float>(2)[c] = static_cast<float>(sum);
}

void FrozenGradient(const HostCall& call) {
  const Extents e(call.in_shape(0));
  if (e.plane == 1) return ColumnsFrozenGradient(call);
  ParallelFor(e.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) FrozenChannel(call, e, c);
  });
}

}  // namespace

OwnFunction OwnBatchNorm(const KernelRequest& request) {
  OwnFunction own;
  switch (request.node->op) {
    case OpType::kBatchNormalization:
      return {&Inference, "own:batch_norm"};
    case OpType::kBatchNormTraining:
      own = {&Training, "own:batch_norm"};
      break;
    case OpType::kBatchNormGrad:
      own = {&Gradient, "own:batch_norm"};
      break;
    case OpType::kBatchNormFrozenGrad:
      return {&FrozenGradient, "own:batch_norm"};
    default:
      return {};
  }
  own.channel_blocks = true;
  return own;
}

}  // namespace lockstep::device::cpu::LS_CODE
