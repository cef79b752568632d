// Guarantees that the process ends even if one of its threads hangs.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_SESSION_END_OF_PROCESS_H_
#define LOCKSTEP_WORKER_SESSION_END_OF_PROCESS_H_

#include "absl/time/time.h"

namespace lockstep::worker {

// Ends this process with `code` after `limit`, without running destructors, unless it ends earlier by itself. Output
// must have been flushed before. Does not block.
void EndProcessWithin(absl::Duration limit, int code);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_END_OF_PROCESS_H_
