#include "worker/device/mirrored_buffer.h"

#include <utility>

#include "common/status/status_macros.h"

namespace lockstep::device {

absl::StatusOr<MirroredBuffer> MirroredBuffer::Make(Device& device, size_t bytes, bool with_host) {
  MirroredBuffer buffer;
  LS_ASSIGN_OR_RETURN(buffer.device_, device.Allocate(bytes));
  if (with_host) LS_RETURN_IF_ERROR(buffer.EnsureHost(device));
  return buffer;
}

MirroredBuffer MirroredBuffer::Over(std::unique_ptr<Buffer> buffer) {
  MirroredBuffer mirrored;
  mirrored.device_ = std::move(buffer);
  return mirrored;
}

absl::Status MirroredBuffer::EnsureHost(Device& device) {
  if (device_ == nullptr || in_place() || host_ != nullptr) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(host_, device.AllocateHost(device_->size()));
  return absl::OkStatus();
}

absl::Status MirroredBuffer::ToDevice(Stream& stream, size_t offset, size_t bytes) const {
  if (in_place()) return absl::OkStatus();
  return stream.CopyToDevice(on_device() + offset, on_host() + offset, bytes);
}

absl::Status MirroredBuffer::ToHost(Stream& stream, size_t offset, size_t bytes) const {
  if (in_place()) return absl::OkStatus();
  return stream.CopyToHost(on_host() + offset, on_device() + offset, bytes);
}

}  // namespace lockstep::device
