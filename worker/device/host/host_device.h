// The base class of devices that compute in host memory on the calling thread: memory, streams and events.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_HOST_HOST_DEVICE_H_
#define LOCKSTEP_WORKER_DEVICE_HOST_HOST_DEVICE_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "worker/device/device.h"
#include "worker/device/host/host_memory.h"

namespace lockstep::device {

class HostDevice : public Device {
 public:
  explicit HostDevice(DeviceInfo info) : info_(std::move(info)) {}

  const DeviceInfo& info() const override { return info_; }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override { return AllocateHostBuffer(bytes); }
  absl::StatusOr<std::unique_ptr<Buffer>> AllocateHost(size_t bytes) override { return AllocateHostBuffer(bytes); }
  bool host_visible() const override { return true; }
  absl::StatusOr<std::unique_ptr<Stream>> NewStream() override { return NewImmediateStream(); }
  absl::StatusOr<std::unique_ptr<Event>> NewEvent() override { return NewImmediateEvent(); }

 private:
  const DeviceInfo info_;
};

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_HOST_DEVICE_H_
