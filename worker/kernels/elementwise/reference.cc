#include <cstring>

#include "common/math/math.h"
#include "common/random/random.h"
#include "worker/kernels/reference/families.h"
#include "worker/kernels/reference/loops.h"

namespace lockstep::device::reference {
namespace {

template <typename T>
void DropoutTraining(const HostCall& call) {
  const auto& attributes = call.attrs<DropoutAttributes>();
  const T* x = call.in<T>(0);
  const int64_t* random = call.in<int64_t>(1);
  T* y = call.out<T>(0);
  bool* mask = call.out<bool>(1);
  const uint32_t threshold = DropThreshold(attributes.ratio);
  const RandomStream stream =
      RandomStream::For(static_cast<uint64_t>(random[0]), attributes.stream, static_cast<uint64_t>(random[1]),
                        static_cast<uint32_t>(random[2]), static_cast<uint32_t>(random[3]));
  const T scale = static_cast<T>(1.0 / (1.0 - attributes.ratio));
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) {
    const bool kept = stream.At(static_cast<uint64_t>(i)) >= threshold;
    if (mask != nullptr) mask[i] = kept;
    y[i] = kept ? x[i] * scale : T(0);
  }
}

template <typename T>
void DropoutGrad(const HostCall& call) {
  const T* dy = call.in<T>(0);
  const bool* mask = call.in<bool>(1);
  T* dx = call.out<T>(0);
  const T scale = static_cast<T>(1.0 / (1.0 - call.attrs<DropoutAttributes>().ratio));
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) dx[i] = mask[i] ? dy[i] * scale : T(0);
}

// The elements as they are.
template <typename T>
void Copy(const HostCall& call) {
  const int64_t count = NumElements(call.out_shape(0));
  if (count > 0 && call.out<T>(0) != call.in<T>(0)) std::memcpy(call.out<T>(0), call.in<T>(0), count * sizeof(T));
}

template <typename T>
void Dropout(const HostCall& call) {
  Copy<T>(call);
  bool* mask = call.out<bool>(1);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; mask != nullptr && i < count; ++i) mask[i] = true;
}

}  // namespace

template <typename T>
HostFunction ElementwiseFunction(OpType type) {
  switch (type) {
    case OpType::kScale:
      return [](const HostCall& call) {
        const T factor = static_cast<T>(call.attrs<ScaleAttributes>().factor);
        Unary<T>(call, [factor](T x) { return x * factor; });
      };
    case OpType::kDropout:
      return &Dropout<T>;
    case OpType::kDropoutTraining:
      return &DropoutTraining<T>;
    case OpType::kDropoutGrad:
      return &DropoutGrad<T>;
    default:
      return nullptr;
  }
}

template HostFunction ElementwiseFunction<float>(OpType);
template HostFunction ElementwiseFunction<double>(OpType);

}  // namespace lockstep::device::reference
