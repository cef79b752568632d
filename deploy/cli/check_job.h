// Checks a job for everything that can be known to fail before machines are spent on it: its set-up by the chief, the
// plans of a worker on this machine, and its directory.
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
  std::string directory;        // empty: the job's own
  device::WorkerDevice device;  // the device option of its workers
  std::string listen;           // the address of its chief; empty: not checked
};

// Adds all findings about the job to `findings`. Returns the forecast of a worker; nullopt if no plans can be made for
// one.
std::optional<worker::ReplicaForecast> CheckJob(const JobToCheck& job, Findings& findings);

// Reports a job file with mistakes as a chief would, without starting one: logs all errors but the first, which it
// returns with its exit code.
absl::Status RefuseJob(const JobReading& job, ExitCode& exit_code);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CHECK_JOB_H_
