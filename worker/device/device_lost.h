// Marks an error after which this process cannot use a device any more: after such an error every CUDA call fails with
// it, and the process's data on the device is unreachable.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_DEVICE_DEVICE_LOST_H_
#define LOCKSTEP_WORKER_DEVICE_DEVICE_LOST_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace lockstep::device {

inline constexpr char kDeviceLostMark[] = "lockstep.device_lost";

inline absl::Status MarkDeviceLost(absl::Status status) {
  status.SetPayload(kDeviceLostMark, absl::Cord("1"));
  return status;
}

inline bool IsDeviceLost(const absl::Status& status) { return status.GetPayload(kDeviceLostMark).has_value(); }

// Returns `to` with the mark if `from` has it: for rewording an error.
inline absl::Status MarkedAs(const absl::Status& from, absl::Status to) {
  return IsDeviceLost(from) ? MarkDeviceLost(std::move(to)) : to;
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_DEVICE_LOST_H_
