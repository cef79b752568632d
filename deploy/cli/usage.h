// Help for commands, and error messages for words that the command line does not know.
//
// Threading: owned by main.
#ifndef LOCKSTEP_DEPLOY_CLI_USAGE_H_
#define LOCKSTEP_DEPLOY_CLI_USAGE_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::cli {

// The help of the command at `path` ("checkpoint", "ls"); of `app` itself if it is empty. InvalidArgument, with the
// nearest name: there is no such command.
absl::StatusOr<std::string> HelpFor(const CLI::App& app, const std::vector<std::string>& path);

// One line about `error`, which app.parse threw and which is not a request for help: unknown commands and options in
// the order in which they were given, each with the nearest known name.
std::string ExplainUsage(const CLI::App& app, const CLI::ParseError& error);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_USAGE_H_
