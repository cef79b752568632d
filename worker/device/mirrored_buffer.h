// Device memory and a copy of it in host memory. Where the host can see the device's memory both are the same memory
// and nothing is copied; its user waits for the device's work as for a copy.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_MIRRORED_BUFFER_H_
#define LOCKSTEP_WORKER_DEVICE_MIRRORED_BUFFER_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/device.h"

namespace lockstep::device {

class MirroredBuffer {
 public:
  MirroredBuffer() = default;

  // Zeroed on both sides. ResourceExhausted as of Allocate and AllocateHost. `with_host` false: the host's side comes
  // with EnsureHost, or not at all.
  static absl::StatusOr<MirroredBuffer> Make(Device& device, size_t bytes, bool with_host = true);
  absl::Status EnsureHost(Device& device);

  bool in_place() const { return device_ != nullptr && device_->host_visible(); }
  size_t size() const { return device_ == nullptr ? 0 : device_->size(); }
  std::byte* on_device() const { return device_ == nullptr ? nullptr : device_->address(); }
  // REQUIRES: there is a host's side.
  std::byte* on_host() const { return in_place() || device_ == nullptr ? on_device() : host_->address(); }

  // Queue a copy of bytes [offset, offset + bytes) to the other side. The host's side stays as it is until that is
  // done.
  absl::Status ToDevice(Stream& stream, size_t offset, size_t bytes) const;
  absl::Status ToHost(Stream& stream, size_t offset, size_t bytes) const;

 private:
  std::unique_ptr<Buffer> device_;
  std::unique_ptr<Buffer> host_;  // null: in place, or none
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_MIRRORED_BUFFER_H_
