// Ends the process when a call of NCCL's does not return. ncclCommAbort and calls that connect are known to hang for
// ever where a peer or a driver is in a bad state; no thread can be called back from there, and what the thread holds
// stays held. Another process can begin anew: it costs a restart and the state's transfer.
//
// The process ends at once, with kExitPreempted ("to be started again"), after a line to stderr.
//
// Threading: owned by the thread that makes the call. A thread of its own counts the time.
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
  // The process ends unless this is destroyed within `limit`. `doing` names the call: "aborting".
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
