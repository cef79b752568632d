#include "worker/inference/device_weights.h"

#include <algorithm>

#include "common/status/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<DeviceWeights> DeviceWeights::Load(device::Device& device, absl::Span<const Variable> variables,
                                                  const ReadVariable& read) {
  DeviceWeights weights;
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<device::Stream> stream, device.NewStream());
  for (const Variable& variable : variables) {
    LS_ASSIGN_OR_RETURN(const Tensor tensor, read(variable));
    const auto bytes = static_cast<size_t>(tensor.byte_size());
    LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Buffer> buffer, device.Allocate(std::max<size_t>(bytes, 1)));
    LS_RETURN_IF_ERROR(stream->CopyToDevice(buffer->address(), tensor.data(), bytes));
    LS_RETURN_IF_ERROR(stream->Synchronize());  // the tensor goes
    weights.addresses_[variable.name] = buffer->address();
    weights.buffers_.push_back(std::move(buffer));
  }
  return weights;
}

}  // namespace lockstep::worker
