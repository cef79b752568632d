// The subcommands of `lockstep model`, one file each.
//
// Threading: owned by main.
#ifndef LOCKSTEP_DEPLOY_CLI_MODEL_H_
#define LOCKSTEP_DEPLOY_CLI_MODEL_H_

#include <CLI/CLI.hpp>

namespace lockstep::cli {

void AddModelOps(CLI::App& model, int& exit_code);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_MODEL_H_
