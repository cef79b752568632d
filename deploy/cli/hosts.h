// The command `lockstep hosts`.
//
// Threading: owned by main.
#ifndef LOCKSTEP_DEPLOY_CLI_HOSTS_H_
#define LOCKSTEP_DEPLOY_CLI_HOSTS_H_

#include <CLI/CLI.hpp>

namespace lockstep::cli {

// Adds the command, as the functions of commands.h do.
void AddHosts(CLI::App& app, int& exit_code);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_HOSTS_H_
