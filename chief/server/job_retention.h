// What of a job's checkpoints is kept, by its job file.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_RETENTION_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_RETENTION_H_

#include <cstdint>
#include <string>

#include "chief/checkpoint/retention.h"
#include "common/job/job.h"

namespace lockstep::chief {

// REQUIRES: train_samples > 0.
RetentionRule RetentionOf(const JobSpec& job, int64_t train_samples);

// Most checkpoints that lie in the job's place at the same time.
struct RoomNeeded {
  int64_t checkpoints = 0;  // known at the start
  std::string more;         // what comes on top and is not known: " and one more for every 1h of training", or empty
};

// `end_step`: the job's last one; the largest of its type when a clock ends the job.
RoomNeeded RoomFor(const JobSpec& job, int64_t train_samples, int64_t end_step);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_RETENTION_H_
