// The subcommands of `lockstep`. Each function adds one to the application; if it is given on the command line, its
// callback runs it and sets `exit_code`.
//
// Threading: owned by main.
#ifndef LOCKSTEP_DEPLOY_CLI_COMMANDS_H_
#define LOCKSTEP_DEPLOY_CLI_COMMANDS_H_

#include <CLI/CLI.hpp>

#include "absl/status/status.h"

namespace lockstep::cli {

void AddRun(CLI::App& app, int& exit_code);
void AddSlurm(CLI::App& app, int& exit_code);
void AddChief(CLI::App& app, int& exit_code);
void AddWorker(CLI::App& app, int& exit_code);
void AddCheck(CLI::App& app, int& exit_code);
void AddProfile(CLI::App& app, int& exit_code);
void AddEval(CLI::App& app, int& exit_code);
void AddPredict(CLI::App& app, int& exit_code);
void AddStatus(CLI::App& app, int& exit_code);
void AddStats(CLI::App& app, int& exit_code);
void AddLogs(CLI::App& app, int& exit_code);
void AddTop(CLI::App& app, int& exit_code);
void AddView(CLI::App& app, int& exit_code);
void AddStop(CLI::App& app, int& exit_code);
void AddDrain(CLI::App& app, int& exit_code);
void AddDump(CLI::App& app, int& exit_code);
void AddToken(CLI::App& app, int& exit_code);
void AddCheckpoint(CLI::App& app, int& exit_code);
// `lockstep checkpoint pin|unpin|rm`, below `checkpoint`.
void AddCheckpointChanges(CLI::App& checkpoint, int& exit_code);
// `lockstep checkpoint adopt` and `export`.
void AddCheckpointAdopt(CLI::App& checkpoint, int& exit_code);
void AddCheckpointExport(CLI::App& checkpoint, int& exit_code);
void AddMetagraph(CLI::App& app, int& exit_code);
void AddData(CLI::App& app, int& exit_code);
void AddModel(CLI::App& app, int& exit_code);

// Prints an error as `lockstep: MESSAGE`, control characters as escapes, and returns `exit_code`.
int Fail(const absl::Status& status, int exit_code);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_COMMANDS_H_
