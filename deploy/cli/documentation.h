// The commands that describe the command line itself, for shells and for man.
//
// Threading: owned by main.
#ifndef LOCKSTEP_DEPLOY_CLI_DOCUMENTATION_H_
#define LOCKSTEP_DEPLOY_CLI_DOCUMENTATION_H_

#include <CLI/CLI.hpp>

namespace lockstep::cli {

// Adds `lockstep completion` and `lockstep manual`, which describe all commands that `app` has when they run.
void AddDocumentation(CLI::App& app, int& exit_code);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_DOCUMENTATION_H_
