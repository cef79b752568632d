// The state of a job, for `lockstep status`: from its chief, or else from its directory, for a job that is done, was
// stopped, failed, or whose chief does not answer.
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
  // The chief's answer. For other jobs only job, phase, step, end_step and published_step are set, with these phases
  // besides the chief's own: DONE, STOPPED, FAILED, NOT_RUNNING (the chief is gone without a record of its end),
  // UNREACHABLE.
  proto::StatusReply status;
  bool answered = false;
  std::optional<int> exit_code;          // of a chief that recorded its end
  std::string reason;                    // why it does not run or cannot be reached
  absl::Time when;                       // the time of these facts: now, or the chief's last record
  std::optional<WorkerStatsFile> stats;  // from the directory, if no chief answered
};

// Whether nothing will change without somebody's action.
bool HasEnded(const JobState& state);

// kExitChiefUnreachable for a job that goes on while its chief does not answer, else kExitDone.
int ExitCodeOf(const JobState& state);

// The state of the job in a directory of this machine. NotFound: there is none. `deadline` limits the wait for the
// chief.
absl::StatusOr<JobState> ReadJobState(const std::string& directory, absl::Duration deadline);

// JSON for other programs: fields with the names of protos/session.proto and some that other tools read. Numbers that
// are NaN or infinite are null. One line if `compact`.
std::string JobStateJson(const JobState& state, bool compact);
// Text for people: lines, each with its newline. Past times are given relative to `now`.
std::string JobStateText(const JobState& state, absl::Time now);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_JOB_STATE_H_
