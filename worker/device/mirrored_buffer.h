// Device memory and a mirror of it in host memory. On a device whose memory the host can access, both are the same
// memory and nothing is copied; callers still wait for the queued work as for a copy.
//
// Threading: owned by the device's owner thread.
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

  // Both sides are zeroed. ResourceExhausted as from Allocate and AllocateHost. Without `with_host` the host side
  // exists only after EnsureHost.
  static absl::StatusOr<MirroredBuffer> Make(Device& device, size_t bytes, bool with_host = true);
  // Takes zeroed memory that both the host and the device can access.
  static MirroredBuffer Over(std::unique_ptr<Buffer> buffer);
  absl::Status EnsureHost(Device& device);

  bool in_place() const { return device_ != nullptr && device_->host_visible(); }
  size_t size() const { return device_ == nullptr ? 0 : device_->size(); }
  std::byte* on_device() const { return device_ == nullptr ? nullptr : device_->address(); }
  // REQUIRES: the host side exists.
  std::byte* on_host() const { return in_place() || device_ == nullptr ? on_device() : host_->address(); }

  // Queues a copy of bytes [offset, offset + bytes) to the other side. REQUIRES: the caller leaves the host side alone
  // until the copy is done.
  absl::Status ToDevice(Stream& stream, size_t offset, size_t bytes) const;
  absl::Status ToHost(Stream& stream, size_t offset, size_t bytes) const;

 private:
  std::unique_ptr<Buffer> device_;
  std::unique_ptr<Buffer> host_;  // null: in place, or none
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_MIRRORED_BUFFER_H_
