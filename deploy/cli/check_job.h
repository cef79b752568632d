// Everything of a job that can be known to fail before machines are spent on it: its set-up, as a chief makes it, the
// plans of a worker of this machine, and its directory.
//
// Threading: thread-safe (reads files, changes nothing); blocks.
#ifndef LOCKSTEP_DEPLOY_CLI_CHECK_JOB_H_
#define LOCKSTEP_DEPLOY_CLI_CHECK_JOB_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/job/findings.h"
#include "common/job/job.h"
#include "common/status/exit_code.h"
#include "worker/device/choice/device_choice.h"
#include "worker/step/forecast.h"

namespace lockstep::cli {

struct JobToCheck {
  std::string path;
  std::vector<std::string> overrides;
  std::string directory;        // empty: as the job says
  device::WorkerDevice device;  // what a worker would be told
  std::string listen;           // where a chief would; empty: nothing is said
};

// Adds everything that is found out about the job to `findings`. Returns the forecast of a worker, nullopt where no
// plans for one can be made.
std::optional<worker::ReplicaForecast> CheckJob(const JobToCheck& job, Findings& findings);

// Finds what is wrong with a job whose file has mistakes, in the words of the chief that it saves from being started:
// logs all errors but the first, which it returns with its exit code.
absl::Status RefuseJob(const JobReading& job, ExitCode& exit_code);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CHECK_JOB_H_
