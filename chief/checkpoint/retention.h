// Which checkpoints of a job are let go.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_RETENTION_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_RETENTION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::chief {

struct RetentionRule {
  int64_t keep_latest = 1;  // verified checkpoints that stay; the last one that verifies stays in any case
  // Besides, the first one at or after each multiple of this distance, step 0 left out. 0: none.
  int64_t keep_every_steps = 0;
  int64_t keep_every_ms = 0;  // the same in milliseconds of training
};

struct RetentionCandidate {
  std::string name;
  int64_t step = 0;
  int64_t trained_ms = 0;
  bool verified = false;  // every byte of it
  bool stands = true;     // it is where it should be: somebody may have removed it by hand
  bool needed = false;    // it stays, whatever the rule says
};

// Names of those that may go, oldest first. `by_step`: all checkpoints of the job, oldest first. One is let go only
// when `keep_latest` newer ones are verified. Where the first one at or after a multiple is not verified yet, the later
// ones up to the next multiple stay with it, up to one that is.
std::vector<std::string> ToRetire(const std::vector<RetentionCandidate>& by_step, const RetentionRule& rule);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_RETENTION_H_
