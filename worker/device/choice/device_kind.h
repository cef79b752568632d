// The kinds of devices.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DEVICE_CHOICE_DEVICE_KIND_H_
#define LOCKSTEP_WORKER_DEVICE_CHOICE_DEVICE_KIND_H_

#include <cstdint>

namespace lockstep::device {

enum class DeviceKind : uint8_t { kReference, kCpu, kCuda };

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_CHOICE_DEVICE_KIND_H_
