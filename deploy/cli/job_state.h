// How a job is, for `lockstep status`: what its chief answers, or else what its directory tells of a job that is done,
// was stopped, failed, or whose chief is not there.
//
// Threading: thread-safe; ReadJobState blocks on the network and the storage.
#ifndef LOCKSTEP_DEPLOY_CLI_JOB_STATE_H_
#define LOCKSTEP_DEPLOY_CLI_JOB_STATE_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "protos/session.pb.h"
#include "protos/stats.pb.h"

namespace lockstep::cli {

struct JobState {
  // Of a chief that answered; for other jobs job, phase, step, end_step and published_step are set. Phases beside the
  // chief's own: DONE, STOPPED, FAILED, NOT_RUNNING (it ended without a word), UNREACHABLE.
  proto::StatusReply status;
  bool answered = false;
  std::optional<int> exit_code;          // of a chief that ended with one
  std::string reason;                    // why it is not running, or not reached
  absl::Time when;                       // of what is said: now, or the last word of the chief
  std::optional<WorkerStatsFile> stats;  // that the directory has, where no chief answered
};

// True when nothing will change by itself any more.
bool HasEnded(const JobState& state);

// The state of the job in a directory of this machine. NotFound when there is none. `deadline` is for the chief's
// answer.
absl::StatusOr<JobState> ReadJobState(const std::string& directory, absl::Duration deadline);

// For other programs: fields under the names of protos/session.proto and some that other tools read; numbers are
// numbers, and null where they are NaN or infinite. One line when `compact`.
std::string JobStateJson(const JobState& state, bool compact);
// For people: lines with their ends. `now` dates what is past.
std::string JobStateText(const JobState& state, absl::Time now);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_JOB_STATE_H_
