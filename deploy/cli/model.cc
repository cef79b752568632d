// `lockstep model`: ONNX files and built-in architectures, without a job.
#include "deploy/cli/model.h"

#include "deploy/cli/commands.h"

namespace lockstep::cli {

void AddModel(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("model", "Look at ONNX models");
  command->require_subcommand(1);
  AddModelOps(*command, exit_code);
}

}  // namespace lockstep::cli
