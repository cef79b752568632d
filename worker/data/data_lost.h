// Marks the error of data files that were valid when they were opened and have changed since. Neither a peer nor this
// process is at fault; the files must be restored.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_DATA_DATA_LOST_H_
#define LOCKSTEP_WORKER_DATA_DATA_LOST_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace lockstep::worker {

inline constexpr char kDataLostMark[] = "lockstep.data_lost";

// Returns `status` with the mark; OK stays OK.
inline absl::Status MarkDataLost(absl::Status status) {
  if (!status.ok()) status.SetPayload(kDataLostMark, absl::Cord("1"));
  return status;
}

inline bool IsDataLost(const absl::Status& status) { return status.GetPayload(kDataLostMark).has_value(); }

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_DATA_LOST_H_
