// `lockstep token`: a credential for one role, made from the job's token.

#include "chief/term/token.h"

#include <iostream>
#include <memory>
#include <string>

#include "common/job_place/job_place.h"
#include "common/net/chief_key.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/place_option.h"

namespace lockstep::cli {
namespace {

struct TokenOptions {
  std::string directory;
  std::string role;
};

absl::StatusOr<std::string> MakeCredential(const TokenOptions& options) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(options.directory));
  LS_ASSIGN_OR_RETURN(const std::string token, chief::ReadToken(place->storage()));
  return RoleCredential(token, *RoleNamed(options.role));
}

}  // namespace

void AddToken(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TokenOptions>();
  CLI::App* const command = app.add_subcommand("token", "Print a credential that lets its holder do one kind of thing");
  AddPlace(*command, "--dir", options->directory, "The job's directory, or s3://BUCKET/PREFIX")->required();
  command
      ->add_option("--role", options->role,
                   "read: see the status; join: train as a worker, too; admin: stop, drain and change checkpoints, too")
      ->required()
      ->check(CLI::IsMember({"read", "join", "admin"}));
  command->callback([options, &exit_code] {
    const absl::StatusOr<std::string> credential = MakeCredential(*options);
    if (!credential.ok()) {
      exit_code = Fail(credential.status(), StorageExitCode(credential.status()));
      return;
    }
    std::cout << *credential << "\n";
  });
}

}  // namespace lockstep::cli
