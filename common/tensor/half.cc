#include "common/tensor/half.h"

namespace lockstep {

Tensor Widened(const Tensor& tensor) {
  if (!IsHalf(tensor.dtype())) return tensor.Clone();
  Tensor wide = Tensor::Zeros(DType::kF32, tensor.shape());
  const auto* const bits = reinterpret_cast<const uint16_t*>(tensor.data());
  const absl::Span<float> out = wide.elements<float>();
  for (size_t i = 0; i < out.size(); ++i) out[i] = WidenHalf(tensor.dtype(), bits[i]);
  return wide;
}

}  // namespace lockstep
