// `lockstep model new`: a built-in architecture with its initial weights as an ONNX file.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/graph/initial_state.h"
#include "common/job/graph_request.h"
#include "common/job/job.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/model.h"

namespace lockstep::cli {
namespace {

struct NewOptions {
  std::string name;
  std::vector<std::string> settings;
  std::string path;
  uint64_t seed = 0;
};

// The settings are those of `model.builtin` in a job, so that is what they are read as.
absl::StatusOr<job::BuiltinModel> ReadSettings(const NewOptions& options) {
  constexpr char kJob[] =
      "name: new\nmodel: {builtin: {name: mlp}}\ndata: {train: {inputs: x, labels: y}}\n"
      "train: {duration: 1steps, global_batch_size: 1, logical_shards: 1, optimizer: {lr: 0}}\n";
  std::vector<std::string> overrides = {absl::StrCat("model.builtin.name=", options.name)};
  for (const std::string& setting : options.settings) overrides.push_back(absl::StrCat("model.builtin.", setting));
  LS_ASSIGN_OR_RETURN(const JobSpec job, ParseJob(kJob, "model", overrides));
  return job.model().builtin();
}

absl::Status New(const NewOptions& options) {
  LS_ASSIGN_OR_RETURN(const job::BuiltinModel builtin, ReadSettings(options));
  LS_ASSIGN_OR_RETURN(const Graph graph, BuildBuiltin(builtin, "inputs"));
  const auto initial = [&](const Variable& variable) { return MakeInitialVariable(variable, options.seed); };
  return WriteModel(graph, initial, kAnyBatch, options.path);
}

}  // namespace

void AddModelNew(CLI::App& model, int& exit_code) {
  CLI::App* command = model.add_subcommand("new", "Write a built-in architecture with its initial weights");
  auto options = std::make_shared<NewOptions>();
  command->add_option("name", options->name, "The architecture, as model.builtin.name of a job")->required();
  command->add_option("--set", options->settings, "A setting of model.builtin: key=value")->allow_extra_args(false);
  command->add_option("-o,--output", options->path, "The ONNX file to write")->required();
  command->add_option("--seed", options->seed, "Seed of the weights, as train.seed of a job")->capture_default_str();
  command->callback([options, &exit_code] {
    const absl::Status status = New(*options);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, StorageExitCode(status));
  });
}

}  // namespace lockstep::cli
