// A process that has said its last word ends, also when one of its threads does not.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_SESSION_END_OF_PROCESS_H_
#define LOCKSTEP_WORKER_SESSION_END_OF_PROCESS_H_

#include "absl/time/time.h"

namespace lockstep::worker {

// Ends this process with `code` after `limit` without running destructors, unless it has ended by itself before. What
// is to be seen of it must have been written and flushed.
void EndProcessWithin(absl::Duration limit, int code);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_END_OF_PROCESS_H_
