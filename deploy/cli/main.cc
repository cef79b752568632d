// The `lockstep` command line. Parses, hands over to a subcommand, ends with its exit code.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/log/escape.h"
#include "common/log/log.h"
#include "common/net/descriptors.h"
#include "common/status/exit_code.h"
#include "common/version/version.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/doctor.h"
#include "deploy/cli/documentation.h"
#include "deploy/cli/hosts.h"
#include "deploy/cli/ssh_worker.h"
#include "deploy/cli/usage.h"

namespace lockstep::cli {

int Fail(const absl::Status& status, int exit_code) {
  if (CurrentLogFormat() == LogFormat::json) {
    WriteLastLine(status, exit_code);
    return exit_code;
  }
  std::cerr << "lockstep: " << EscapeControls(status.message()) << "\n";
  return exit_code;
}

}  // namespace lockstep::cli

namespace {

void AddHelp(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("help", "What a command does and takes");
  auto path = std::make_shared<std::vector<std::string>>();
  command->add_option("command", *path, "As `lockstep help checkpoint ls`; none: all commands");
  command->callback([&app, path, &exit_code] {
    const absl::StatusOr<std::string> text = lockstep::cli::HelpFor(app, *path);
    if (text.ok()) {
      std::cout << *text;
    } else {
      exit_code = lockstep::cli::Fail(text.status(), lockstep::kExitUsage);
    }
  });
  app.add_subcommand("version", "The version of this program")->callback([] {
    std::cout << lockstep::kVersion << "\n";
  });
}

}  // namespace

int main(int argc, char** argv) {
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);  // what fails is said by the commands, once
  if (const absl::Status style = lockstep::LogStyleOfEnvironment().status(); !style.ok()) {
    return lockstep::cli::Fail(style, lockstep::kExitUsage);
  }
  lockstep::RaiseDescriptorLimit();  // a checkpoint may have more files than the usual limit allows
  CLI::App app{"Trains one model on many machines that may disappear at any moment; the result does not change.",
               "lockstep"};
  app.set_version_flag("--version", lockstep::kVersion);
  app.require_subcommand(1);
  int exit_code = lockstep::kExitDone;
  lockstep::cli::AddRun(app, exit_code);
  lockstep::cli::AddHosts(app, exit_code);
  lockstep::cli::AddSshWorker(app, exit_code);
  lockstep::cli::AddChief(app, exit_code);
  lockstep::cli::AddWorker(app, exit_code);
  lockstep::cli::AddSlurm(app, exit_code);
  lockstep::cli::AddCheck(app, exit_code);
  lockstep::cli::AddDoctor(app, exit_code);
  lockstep::cli::AddProfile(app, exit_code);
  lockstep::cli::AddEval(app, exit_code);
  lockstep::cli::AddPredict(app, exit_code);
  lockstep::cli::AddStatus(app, exit_code);
  lockstep::cli::AddLogs(app, exit_code);
  lockstep::cli::AddTop(app, exit_code);
  lockstep::cli::AddStats(app, exit_code);
  lockstep::cli::AddView(app, exit_code);
  lockstep::cli::AddStop(app, exit_code);
  lockstep::cli::AddDrain(app, exit_code);
  lockstep::cli::AddDump(app, exit_code);
  lockstep::cli::AddToken(app, exit_code);
  lockstep::cli::AddCheckpoint(app, exit_code);
  lockstep::cli::AddMetagraph(app, exit_code);
  lockstep::cli::AddData(app, exit_code);
  lockstep::cli::AddModel(app, exit_code);
  lockstep::cli::AddDocumentation(app, exit_code);
  AddHelp(app, exit_code);
  for (CLI::App* command : app.get_subcommands({})) command->set_version_flag("--version", lockstep::kVersion);
  if (argc <= 1) {
    std::cout << app.help();
    return lockstep::kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const std::string why = lockstep::cli::ExplainUsage(app, error);
    if (lockstep::CurrentLogFormat() == lockstep::LogFormat::json) {
      return lockstep::cli::Fail(absl::InvalidArgumentError(why), lockstep::kExitUsage);
    }
    std::cerr << lockstep::EscapeControls(why) << "\n";
    return lockstep::kExitUsage;
  }
  lockstep::FlushLog();
  return exit_code;
}
