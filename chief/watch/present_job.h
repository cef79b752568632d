// The present state of a job, for its page and its metrics: from its chief, or else from its directory.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_WATCH_PRESENT_JOB_H_
#define LOCKSTEP_CHIEF_WATCH_PRESENT_JOB_H_

#include <optional>
#include <string>

#include "protos/session.pb.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

// The `state` of a status line that describes an excluded host instead of a worker.
inline constexpr char kExcludedHost[] = "excluded";

struct PresentJob {
  proto::StatusReply status;
  WorkerStatsFile stats;
  bool live = false;             // a chief runs, or may run out of reach
  std::optional<int> exit_code;  // of a chief that ended
  std::string cause;             // why it ended or cannot be reached; empty while it runs
  int64_t global_batch = 0;      // samples of a step; 0: not known
  int64_t epoch_samples = 0;     // 0: not known
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WATCH_PRESENT_JOB_H_
