// Decides which checkpoints of a job may be removed.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_RETENTION_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_RETENTION_H_

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::chief {

struct RetentionRule {
  int64_t keep_latest = 1;  // verified checkpoints that stay; the last one that verifies always stays
  // Also keep the first checkpoint at or after each multiple of this distance, except step 0. 0: none.
  int64_t keep_every_steps = 0;
  int64_t keep_every_ms = 0;  // the same in milliseconds of training
};

struct RetentionCandidate {
  std::string name;
  int64_t step = 0;
  int64_t trained_ms = 0;
  bool verified = false;  // every byte of it
  bool stands = true;     // its files exist: it was not removed by hand
  bool needed = false;    // it stays, whatever the rule says
};

// The names of the checkpoints that may be removed, oldest first. `by_step`: all checkpoints of the job, oldest first.
// A checkpoint may be removed only if `keep_latest` newer ones are verified. While the first one at or after a multiple
// is not verified, the later ones before the next multiple stay too, up to the first that is verified.
std::vector<std::string> ToRetire(const std::vector<RetentionCandidate>& by_step, const RetentionRule& rule);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_RETENTION_H_
