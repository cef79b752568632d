// The `lockstep` command line. Parses, hands over to a subcommand, ends with its exit code.
#include <iostream>

#include "common/status/exit_code.h"
#include "common/version/version.h"
#include "deploy/cli/commands.h"

namespace lockstep::cli {

int Fail(const absl::Status& status, int exit_code) {
  std::cerr << "lockstep: " << status.message() << "\n";
  return exit_code;
}

}  // namespace lockstep::cli

int main(int argc, char** argv) {
  CLI::App app{"Trains one model on many machines that may disappear at any moment; the result does not change."};
  app.set_version_flag("--version", lockstep::kVersion);
  app.require_subcommand(1);
  int exit_code = lockstep::kExitDone;
  lockstep::cli::AddRun(app, exit_code);
  lockstep::cli::AddChief(app, exit_code);
  lockstep::cli::AddWorker(app, exit_code);
  lockstep::cli::AddCheck(app, exit_code);
  lockstep::cli::AddProfile(app, exit_code);
  lockstep::cli::AddStatus(app, exit_code);
  lockstep::cli::AddStop(app, exit_code);
  lockstep::cli::AddCheckpoint(app, exit_code);
  lockstep::cli::AddMetagraph(app, exit_code);
  lockstep::cli::AddData(app, exit_code);
  lockstep::cli::AddModel(app, exit_code);
  for (CLI::App* command : app.get_subcommands({})) command->set_version_flag("--version", lockstep::kVersion);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? lockstep::kExitDone : lockstep::kExitUsage;
  }
  return exit_code;
}
