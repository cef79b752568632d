// `lockstep ssh-worker`, which `lockstep hosts` runs for each worker: a worker on another host, at the end of a
// connection of ssh. Its token goes over the connection, never to a command line. When this process is asked to end,
// the worker's input ends, so that it leaves at a step boundary.
//
// Threading: owned by main.
#ifndef LOCKSTEP_DEPLOY_CLI_SSH_WORKER_H_
#define LOCKSTEP_DEPLOY_CLI_SSH_WORKER_H_

#include <CLI/CLI.hpp>

namespace lockstep::cli {

// As those of commands.h; it is in no help.
void AddSshWorker(CLI::App& app, int& exit_code);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SSH_WORKER_H_
