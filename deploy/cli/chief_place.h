// Which job a command is about, and the way to its chief: --dir, or --chief with a token.
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
  std::string directory;  // one of this and `address` is given
  std::string address;
  std::string token_file;
};

// Adds the options to `command`, which fills the place when it is parsed.
std::shared_ptr<ChiefPlace> AddChiefPlace(CLI::App& command);

// Does not connect yet. Codes as AdminClient::ForDirectory; Unauthenticated without a token.
absl::StatusOr<std::unique_ptr<AdminClient>> ConnectTo(const ChiefPlace& place);

// How the job is, as its chief says or its directory tells. Blocks, for `deadline` on the chief. Codes as ReadJobState;
// Unavailable when the chief of an address does not answer.
absl::StatusOr<JobState> LookAt(const ChiefPlace& place, absl::Duration deadline);

// Prints what is wrong with the chief or the way to it, and returns the exit code for it.
int ChiefFailure(const absl::Status& status);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_CHIEF_PLACE_H_
