// Marks an error of data that were sound when they were opened and are not any more: no peer and no defect of this
// process is to blame, and the same files have to be put back.
//
// Threading: stateless.
#ifndef LOCKSTEP_WORKER_DATA_DATA_LOST_H_
#define LOCKSTEP_WORKER_DATA_DATA_LOST_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace lockstep::worker {

inline constexpr char kDataLostMark[] = "lockstep.data_lost";

// OK stays OK.
inline absl::Status MarkDataLost(absl::Status status) {
  if (!status.ok()) status.SetPayload(kDataLostMark, absl::Cord("1"));
  return status;
}

inline bool IsDataLost(const absl::Status& status) { return status.GetPayload(kDataLostMark).has_value(); }

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_DATA_LOST_H_
