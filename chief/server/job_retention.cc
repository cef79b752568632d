#include "chief/server/job_retention.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/job/extent.h"

namespace lockstep::chief {

RetentionRule RetentionOf(const JobSpec& job, int64_t train_samples) {
  RetentionRule rule{.keep_latest = job.checkpoint().keep_latest()};
  if (!job.checkpoint().has_keep_every()) return rule;
  const job::Amount& every = job.checkpoint().keep_every();
  if (const auto time = AmountTime(every)) {
    rule.keep_every_ms = std::max<int64_t>(1, absl::ToInt64Milliseconds(*time));
  } else {
    rule.keep_every_steps = StepsOf(every, train_samples, job.train().global_batch_size()).value_or(0);
  }
  return rule;
}

RoomNeeded RoomFor(const JobSpec& job, int64_t train_samples, int64_t end_step) {
  const RetentionRule rule = RetentionOf(job, train_samples);
  // One more than is kept: the new checkpoint is complete before the oldest goes.
  RoomNeeded room{.checkpoints = rule.keep_latest + 1};
  if (job.checkpoint().keep_best()) ++room.checkpoints;
  const bool end_is_known = end_step < std::numeric_limits<int64_t>::max();
  if (rule.keep_every_steps > 0 && end_is_known) {
    // No more than are saved, where that is known.
    const auto saved = StepsOf(job.checkpoint().every(), train_samples, job.train().global_batch_size());
    room.checkpoints += end_step / std::max(rule.keep_every_steps, saved.value_or(1));
  } else if (job.checkpoint().has_keep_every()) {
    room.more = absl::StrCat(" and one more for every ", AmountText(job.checkpoint().keep_every()), " of training");
  }
  return room;
}

}  // namespace lockstep::chief
