// A fake device that postpones everything: work queued on a stream is done when somebody waits for it, by the thread
// that waits, and not before. Whoever reads memory too early, changes what a copy still needs, or drops memory in use
// gets wrong values here, on every run, as on a GPU now and then. With hidden memory the host that touches what is the
// device's ends with a signal.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_FAKES_DEFERRED_DEVICE_H_
#define LOCKSTEP_WORKER_FAKES_DEFERRED_DEVICE_H_

#include <cstdint>
#include <memory>

#include "worker/device/device.h"

namespace lockstep::device {

enum class DeferredMemory : uint8_t {
  kOfInner,
  kHidden,  // no host can touch it, but in work that was queued
};

// Kernels are those of `inner`, which computes in host memory. The first `refused_recordings` fail where they end, as
// on a GPU when a library does what cannot be recorded.
std::unique_ptr<Device> MakeDeferredDevice(std::unique_ptr<Device> inner,
                                           DeferredMemory memory = DeferredMemory::kOfInner,
                                           int refused_recordings = 0);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_FAKES_DEFERRED_DEVICE_H_
