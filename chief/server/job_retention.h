// Derives from a job file which checkpoints are kept, and how much room they need.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_RETENTION_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_RETENTION_H_

#include <cstdint>
#include <string>

#include "chief/checkpoint/retention.h"
#include "common/job/job.h"

namespace lockstep::chief {

// The retention rule of `job`. REQUIRES: train_samples > 0.
RetentionRule RetentionOf(const JobSpec& job, int64_t train_samples);

// The most checkpoints that are stored at the same time.
struct RoomNeeded {
  int64_t checkpoints = 0;  // known at the start
  std::string more;  // those that depend on the training time: " and one more for every 1h of training", or empty
};

// `end_step`: the job's last step; the largest value if a clock ends the job.
RoomNeeded RoomFor(const JobSpec& job, int64_t train_samples, int64_t end_step);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_RETENTION_H_
