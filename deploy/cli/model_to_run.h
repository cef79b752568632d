// A model with its weights and its job, to evaluate or to predict with.
//
// Threading: thread-compatible; making one and reading it block on the storage.
#ifndef LOCKSTEP_DEPLOY_CLI_MODEL_TO_RUN_H_
#define LOCKSTEP_DEPLOY_CLI_MODEL_TO_RUN_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/graph/metagraph.h"
#include "common/job/job.h"
#include "deploy/cli/trained_model.h"
#include "worker/data/data_source.h"
#include "worker/inference/device_weights.h"
#include "worker/plan/kernel_plan.h"
#include "worker/step/job_device.h"

namespace lockstep::cli {

// What a command is told about the model and the machine.
struct ModelRunOptions {
  TrainedModelChoice model;  // `directory` may be a job file where the command takes one
  std::vector<std::string> overrides;
  std::string device = "auto";
  int local_rank = 0;  // of several processes of this machine: without a number in `device` they take GPUs in turn
};

// Those of a trained model, --set and --device, read into `options`, which outlives the parsing.
void AddModelRunOptions(CLI::App& command, ModelRunOptions& options);

// A data set in place of the job's data.eval.
struct DataChoice {
  std::string inputs;
  std::string labels;
  std::string tokens;
};

// --inputs and --tokens, and where the command reads them --labels, read into `choice`, which outlives the parsing.
void AddDataChoice(CLI::App& command, DataChoice& choice, bool labels);

struct ModelToRun {
  JobSpec job;
  MetaGraph metagraph;
  int64_t step = 0;
  std::string description;  // for people: which weights these are
  std::string digest;       // of the state that they are from
  bool average = false;     // they are train.ema's
  worker::ReadVariable read;
  std::optional<worker::KernelPlan> kernel_plan;  // of the job; none was made, or it cannot be read

  // What is read: the chosen data set, in the form of the job's, or the job's data.eval. InvalidArgument: nothing is
  // chosen and the job has none, or tokens are and the model takes none.
  absl::StatusOr<job::DataFiles> FilesOf(const DataChoice& choice) const;
  // The data of `files` as the model takes them, with labels or without. Codes of worker::OpenDataSource.
  absl::StatusOr<std::unique_ptr<worker::DataSource>> OpenData(job::DataFiles files, bool labels) const;
};

// The trained model of a directory, with the job that made it under `options.overrides`. `average`: its average where
// the job evaluates that, not only where it is asked for. Codes of TrainedModel::Open; InvalidArgument: the overrides.
absl::StatusOr<ModelToRun> OpenTrainedModel(const ModelRunOptions& options, bool average_as_evaluated);

// The model of a job file as it begins. `exit_code` is set when it fails.
absl::StatusOr<ModelToRun> OpenJobModel(const ModelRunOptions& options, int& exit_code);

// The device of the model's job for its kernel plan, where this machine can replay it; else the best one for new
// choices, and `assumed` says why. Codes of worker::MakeJobDevice; InvalidArgument: --device.
struct DeviceToRun {
  worker::MadeDevice made;
  bool replays = false;
  std::string assumed;  // "" where nothing was
};
absl::StatusOr<DeviceToRun> MakeDeviceToRun(const ModelToRun& model, const ModelRunOptions& options);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_MODEL_TO_RUN_H_
