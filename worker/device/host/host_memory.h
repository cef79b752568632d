// Buffers, streams and events of devices that compute in host memory on the calling thread: work is done when the call
// that queues it returns.
//
// Threading: owned by the device's owner thread; buffers may be dropped and events waited for by any thread.
#ifndef LOCKSTEP_WORKER_DEVICE_HOST_HOST_MEMORY_H_
#define LOCKSTEP_WORKER_DEVICE_HOST_HOST_MEMORY_H_

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/device.h"

namespace lockstep::device {

// Zeroed host memory, aligned to Buffer::kAlignment, with all pages touched; large buffers use huge pages if available.
// ResourceExhausted names the size.
absl::StatusOr<std::unique_ptr<Buffer>> AllocateHostBuffer(size_t bytes);

// A stream that executes work immediately, and its events. Kernel::Launch returns the failure of the kernel.
std::unique_ptr<Stream> NewImmediateStream();
std::unique_ptr<Event> NewImmediateEvent();

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_HOST_HOST_MEMORY_H_
