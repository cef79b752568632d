// What a job's directory says of the job's end, for a worker that no chief answers: a chief that is done goes away, and
// a worker that was cut off meanwhile, or came later, would wait for it in vain.
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

// nullopt unless `chief_file` is the address file of a job's directory (DIR/chief/address) and that job is done: not
// stopped, not failed, not begun again since.
std::optional<JobEnd> FindJobEnd(const std::string& chief_file);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_JOB_END_H_
