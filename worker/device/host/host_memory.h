// Buffers, streams and events of devices that compute in host memory on the calling thread: work is done when the call
// that queues it returns.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_DEVICE_HOST_HOST_MEMORY_H_
#define LOCKSTEP_WORKER_DEVICE_HOST_HOST_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/device.h"

namespace lockstep::device {

// Zeroed host memory at Buffer::kAlignment, every page touched; large buffers lie in huge pages where the system has
// them. ResourceExhausted names the size.
absl::StatusOr<std::unique_ptr<Buffer>> AllocateHostBuffer(size_t bytes);

// A stream that does everything at once, and its marks. A kernel that fails returns its failure from Launch.
std::unique_ptr<Stream> NewImmediateStream();
std::unique_ptr<Event> NewImmediateEvent();

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_HOST_MEMORY_H_
