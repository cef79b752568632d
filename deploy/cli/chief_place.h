// The options by which a command finds a job and its chief: --dir, or --chief with a token.
//
// Threading: owned by main.
#ifndef LOCKSTEP_DEPLOY_CLI_CHIEF_PLACE_H_
#define LOCKSTEP_DEPLOY_CLI_CHIEF_PLACE_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "deploy/cli/admin_client.h"
#include "deploy/cli/job_state.h"

namespace lockstep::cli {

struct ChiefPlace {
  std::string directory;  // either this or `address` is given
  std::string address;
  std::string token_file;
};

// Adds the options to `command`; parsing fills the returned place.
std::shared_ptr<ChiefPlace> AddChiefPlace(CLI::App& command);

// Does not connect yet. Codes as AdminClient::ForDirectory; Unauthenticated without a token.
absl::StatusOr<std::unique_ptr<AdminClient>> ConnectTo(const ChiefPlace& place);

// The state of the job, from its chief or else from its directory. Blocks, for at most `deadline` on the chief. Codes
// as ReadJobState; Unavailable: the chief at `address` does not answer.
absl::StatusOr<JobState> LookAt(const ChiefPlace& place, absl::Duration deadline);

// Prints an error of the chief or of the connection to it, and returns its exit code.
int ChiefFailure(const absl::Status& status);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CHIEF_PLACE_H_
