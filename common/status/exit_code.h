// The exit codes of every program, by which supervisors, service managers and schedulers decide what to do next.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_STATUS_EXIT_CODE_H_
#define LOCKSTEP_COMMON_STATUS_EXIT_CODE_H_

#include "absl/status/status.h"

namespace lockstep {

enum ExitCode : int {
  kExitDone = 0,
  kExitUsage = 64,
  kExitBadData = 65,  // data or model
  kExitChiefUnreachable = 69,
  kExitBug = 70,  // also: failure budget spent
  kExitStorage = 74,
  kExitPreempted = 75,
  kExitFenced = 76,  // by a newer chief
  kExitBadToken = 77,
  kExitBadJob = 78,  // also: probe failed, does not fit, port in use
};

// The code for a failure while a job's directory is read or written: kExitBadJob for a mistake in its content or
// settings, kExitStorage for an error of the storage.
inline ExitCode StorageExitCode(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kFailedPrecondition:
      return kExitBadJob;
    case absl::StatusCode::kInternal:
      return kExitBug;
    default:
      return kExitStorage;
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_STATUS_EXIT_CODE_H_
