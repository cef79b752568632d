// Marks an error after which a device is of no use to this process any more: CUDA keeps such an error and
// answers every later call with it, so what the process holds there is out of reach.
//
// Threading: stateless.
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

// `to`, marked where `from` is: for errors that are said in other words.
inline absl::Status MarkedAs(const absl::Status& from, absl::Status to) {
  return IsDeviceLost(from) ? MarkDeviceLost(std::move(to)) : to;
}

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_DEVICE_LOST_H_
