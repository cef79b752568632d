#include "common/math/math.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

// X as [batch, channels, plane].
struct Extents {
  explicit Extents(const Shape& x) : batch(x[0]), channels(x[1]), plane(1) {
    for (size_t i = 2; i < x.size(); ++i) plane *= x[i];
  }
  int64_t batch;
  int64_t channels;
  int64_t plane;

  // Calls visit(offset) for every element of a channel, in index order.
  template <typename Visit>
  void ForChannel(int64_t channel, Visit visit) const {
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t i = 0; i < plane; ++i) visit((n * channels + channel) * plane + i);
    }
  }
};

template <typename T>
void Inference(const HostCall& call) {
  const Extents extents(call.in_shape(0));
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  const double epsilon = call.attrs<BatchNormAttributes>().epsilon;
  for (int64_t c = 0; c < extents.channels; ++c) {
    const double inv_std = 1.0 / SquareRoot(static_cast<double>(call.in<T>(4)[c]) + epsilon);
    const double scale = call.in<T>(1)[c];
    const double bias = call.in<T>(2)[c];
    const double mean = call.in<T>(3)[c];
    extents.ForChannel(c, [&](int64_t i) { y[i] = static_cast<T>((x[i] - mean) * inv_std * scale + bias); });
  }
}

template <typename T>
void Training(const HostCall& call) {
  const auto& attributes = call.attrs<BatchNormAttributes>();
  const Extents extents(call.in_shape(0));
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  const double count = static_cast<double>(extents.batch * extents.plane);
  for (int64_t c = 0; c < extents.channels; ++c) {
    double sum = 0;
    extents.ForChannel(c, [&](int64_t i) { sum += x[i]; });
    const double mean = sum / count;
    double squares = 0;
    extents.ForChannel(c, [&](int64_t i) { squares += (x[i] - mean) * (x[i] - mean); });
    const double variance = squares / count;
    const double inv_std = 1.0 / SquareRoot(variance + attributes.epsilon);
    const double scale = call.in<T>(1)[c];
    const double bias = call.in<T>(2)[c];
    extents.ForChannel(c, [&](int64_t i) { y[i] = static_cast<T>((x[i] - mean) * inv_std * scale + bias); });
    const bool unbiased = attributes.unbiased_running_var && count > 1;
    if (call.out<T>(1) != nullptr) call.out<T>(1)[c] = static_cast<T>(mean);
    if (call.out<T>(2) != nullptr) call.out<T>(2)[c] = static_cast<T>(inv_std);
    if (call.out<T>(3) != nullptr) call.out<T>(3)[c] = static_cast<T>(unbiased ? squares / (count - 1) : variance);
  }
}

// With xhat = (x - mean) * inv_std and sums over the n elements of a channel:
//   dX = scale * inv_std * (dY - sum(dY) / n - xhat * sum(dY * xhat) / n)
template <typename T>
void Gradient(const HostCall& call) {
  const Extents extents(call.in_shape(0));
  const T* dy = call.in<T>(0);
  const T* x = call.in<T>(1);
  const double count = static_cast<double>(extents.batch * extents.plane);
  for (int64_t c = 0; c < extents.channels; ++c) {
    const double scale = call.in<T>(2)[c];
    const double mean = call.in<T>(3)[c];
    const double inv_std = call.in<T>(4)[c];
    double sum = 0;
    double dot = 0;
    extents.ForChannel(c, [&](int64_t i) {
      sum += dy[i];
      dot += dy[i] * ((x[i] - mean) * inv_std);
    });
    if (T* dx = call.out<T>(0); dx != nullptr) {
      extents.ForChannel(c, [&](int64_t i) {
        const double xhat = (x[i] - mean) * inv_std;
        dx[i] = static_cast<T>(scale * inv_std * (dy[i] - sum / count - xhat * dot / count));
      });
    }
    if (call.out<T>(1) != nullptr) call.out<T>(1)[c] = static_cast<T>(dot);
    if (call.out<T>(2) != nullptr) call.out<T>(2)[c] = static_cast<T>(sum);
  }
}

// dX = dY * scale * inv_std, dScale = sum(dY * xhat), dBias = sum(dY).
template <typename T>
void FrozenGradient(const HostCall& call) {
  const Extents extents(call.in_shape(0));
  const T* dy = call.in<T>(0);
  const T* x = call.in<T>(1);
  const double epsilon = call.attrs<BatchNormAttributes>().epsilon;
  for (int64_t c = 0; c < extents.channels; ++c) {
    const double mean = call.in<T>(3)[c];
    const double inv_std = 1.0 / SquareRoot(static_cast<double>(call.in<T>(4)[c]) + epsilon);
    const double factor = call.in<T>(2)[c] * inv_std;
    double sum = 0;
    double dot = 0;
    extents.ForChannel(c, [&](int64_t i) {
      sum += dy[i];
      dot += dy[i] * ((x[i] - mean) * inv_std);
      if (call.out<T>(0) != nullptr) call.out<T>(0)[i] = static_cast<T>(dy[i] * factor);
    });
    if (call.out<T>(1) != nullptr) call.out<T>(1)[c] = static_cast<T>(dot);
    if (call.out<T>(2) != nullptr) call.out<T>(2)[c] = static_cast<T>(sum);
  }
}

}  // namespace

template <typename T>
HostFunction BatchNormFunction(OpType type) {
  switch (type) {
    case OpType::kBatchNormalization:
      return &Inference<T>;
    case OpType::kBatchNormTraining:
      return &Training<T>;
    case OpType::kBatchNormGrad:
      return &Gradient<T>;
    case OpType::kBatchNormFrozenGrad:
      return &FrozenGradient<T>;
    default:
      return nullptr;
  }
}

template HostFunction BatchNormFunction<float>(OpType);
template HostFunction BatchNormFunction<double>(OpType);

}  // namespace lockstep::device::reference
