// The command `lockstep doctor`.
//
// Threading: owned by main.
#ifndef LOCKSTEP_DEPLOY_CLI_DOCTOR_H_
#define LOCKSTEP_DEPLOY_CLI_DOCTOR_H_

#include <CLI/CLI.hpp>

namespace lockstep::cli {

// Adds the command, as the functions of commands.h do.
void AddDoctor(CLI::App& app, int& exit_code);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_DOCTOR_H_
