// Ends the process when a call of NCCL does not return. ncclCommAbort and connecting can hang forever when a peer or a
// driver is in a bad state; a hung thread cannot be interrupted, and the locks and memory that it holds stay held. A
// new process can rejoin, at the cost of a restart and a transfer of the state.
//
// The process ends at once with kExitPreempted ("start me again"), after a line to stderr.
//
// Threading: owned by the thread that makes the call; a second thread, owned by the object, counts the time.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_NCCL_RETURN_LIMIT_H_
#define LOCKSTEP_WORKER_COLLECTIVES_NCCL_RETURN_LIMIT_H_

#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/sync/mutex.h"

namespace lockstep::worker {

class ReturnLimit {
 public:
  // Ends the process unless destroyed within `limit`. `doing` names the call for the message: "aborting".
  ReturnLimit(absl::Duration limit, absl::string_view doing);
  ~ReturnLimit();
  ReturnLimit(const ReturnLimit&) = delete;
  ReturnLimit& operator=(const ReturnLimit&) = delete;

 private:
  void Watch();

  const absl::Duration limit_;
  const std::string doing_;
  Mutex mutex_;
  CondVar changed_;
  bool returned_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_NCCL_RETURN_LIMIT_H_
