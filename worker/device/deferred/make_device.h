// A fake device that postpones everything: work queued on a stream is done when somebody waits for it, by the thread
// that waits, and not before. Whoever reads memory too early, changes what a copy still needs, or drops memory in use
// gets wrong values here, on every run, as on a GPU now and then.
//
// Threading: as device.h, but Event::Wait is for the owner thread only.
#ifndef LOCKSTEP_WORKER_DEVICE_DEFERRED_MAKE_DEVICE_H_
#define LOCKSTEP_WORKER_DEVICE_DEFERRED_MAKE_DEVICE_H_

#include <memory>

#include "worker/device/device.h"

namespace lockstep::device {

// Memory and kernels are those of `inner`.
std::unique_ptr<Device> MakeDeferredDevice(std::unique_ptr<Device> inner);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_DEFERRED_MAKE_DEVICE_H_
