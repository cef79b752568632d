// The command `lockstep ssh-worker`, which `lockstep hosts` runs for each worker: it runs a worker on another host over
// ssh. The token goes over the connection, never into a command line. When this process is asked to end, it closes the
// worker's input, and the worker leaves at a step boundary.
//
// Threading: owned by main.
#ifndef LOCKSTEP_DEPLOY_CLI_SSH_WORKER_H_
#define LOCKSTEP_DEPLOY_CLI_SSH_WORKER_H_

#include <CLI/CLI.hpp>

namespace lockstep::cli {

// Adds the command, as the functions of commands.h do; hidden from the help.
void AddSshWorker(CLI::App& app, int& exit_code);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SSH_WORKER_H_
