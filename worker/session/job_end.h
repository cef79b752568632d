// Reads from a job's directory whether the job has ended. A worker asks when no chief answers: a chief exits when its
// job is done, and a worker that was cut off at that time or started later would wait for it forever.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_SESSION_JOB_END_H_
#define LOCKSTEP_WORKER_SESSION_JOB_END_H_

#include <optional>
#include <string>

#include "common/protocol/ids.h"

namespace lockstep::worker {

struct JobEnd {
  Term term = 0;  // of the chief that ended the job
  std::string reason;
};

// nullopt unless `chief_file` is the address file of a job's directory (DIR/chief/address) and that job is done, as
// opposed to stopped, failed, or started again. Blocks on the file system.
std::optional<JobEnd> FindJobEnd(const std::string& chief_file);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_JOB_END_H_
