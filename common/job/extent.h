// Converts amounts of training (the length of a job, the distance between saves) to steps. One step uses
// `global_batch_size` samples of an endless stream of epochs, so an epoch need not end with a step: an amount given in
// samples or epochs rounds up to the step that completes it.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_EXTENT_H_
#define LOCKSTEP_COMMON_JOB_EXTENT_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "protos/job.pb.h"

namespace lockstep {

// "10ep", "0.5ep", "500steps", "60000samples", "2h", "1h30m", "250ms", "auto". InvalidArgument says what is wrong.
absl::StatusOr<job::Amount> ParseAmount(absl::string_view text);

// Whether the learning rate of this schedule depends on the step at which the job ends.
bool ScheduleEndsWithJob(job::Schedule::Name name);

// The shortest text that ParseAmount reads as `amount`.
std::string AmountText(const job::Amount& amount);

// The wall time of an amount given as time; nullopt for the others.
std::optional<absl::Duration> AmountTime(const job::Amount& amount);

// The first step at whose end `amount` of training is reached, rounding up: 10ep of 60,000 samples at 256 per step are
// 2,344 steps. nullopt for an amount of time and for `auto`. Saturates at 2^62. REQUIRES: epoch_samples,
// global_batch_size > 0.
std::optional<int64_t> StepsOf(const job::Amount& amount, int64_t epoch_samples, int64_t global_batch_size);

// Samples of one forward and backward pass: `train.micro_batch`, else the size of a logical shard.
int64_t PassBatch(const job::JobSpec& spec);

// The job's last step; nullopt when its duration is a time.
std::optional<int64_t> TotalSteps(const job::JobSpec& spec, int64_t train_samples);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_EXTENT_H_
