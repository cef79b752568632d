// A fake device that defers all work: work queued on a stream is done only when a thread waits for it, by that thread.
// Code that reads memory too early, changes the source of a pending copy, or frees memory in use gets wrong values on
// every run here, while a GPU would show them now and then. With hidden memory, a host access to device memory ends the
// process with a signal.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_FAKES_DEFERRED_DEVICE_H_
#define LOCKSTEP_WORKER_FAKES_DEFERRED_DEVICE_H_

#include <cstdint>
#include <memory>

#include "worker/device/device.h"

namespace lockstep::device {

enum class DeferredMemory : uint8_t {
  kOfInner,
  kHidden,  // inaccessible to the host except in queued work
};

// Kernels are those of `inner`, which computes in host memory. The first `refused_recordings` recordings fail at
// EndRecording, as on a GPU when a library does something that cannot be recorded.
std::unique_ptr<Device> MakeDeferredDevice(std::unique_ptr<Device> inner,
                                           DeferredMemory memory = DeferredMemory::kOfInner,
                                           int refused_recordings = 0);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_FAKES_DEFERRED_DEVICE_H_
