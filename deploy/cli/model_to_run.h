// A model with its weights and its job, for `lockstep eval` and `lockstep predict`.
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

// The options of a command that select the model and the device.
struct ModelRunOptions {
  TrainedModelChoice model;  // `directory` may be a job file if the command allows it
  std::vector<std::string> overrides;
  std::string device = "auto";
  int local_rank = 0;  // the process's number on its machine: without a number in `device`, processes take GPUs in turn
};

// Adds the options of a trained model, --set and --device, which are parsed into `options`; it must outlive the
// parsing.
void AddModelRunOptions(CLI::App& command, ModelRunOptions& options);

// A data set in place of the job's data.eval.
struct DataChoice {
  std::string inputs;
  std::string labels;
  std::string tokens;
};

// Adds --inputs and --tokens, and --labels if `labels`, which are parsed into `choice`; it must outlive the parsing.
void AddDataChoice(CLI::App& command, DataChoice& choice, bool labels);

struct ModelToRun {
  JobSpec job;
  MetaGraph metagraph;
  int64_t step = 0;
  std::string description;  // the origin of the weights, for people
  std::string digest;       // of the state that has the weights
  bool average = false;     // the weights are the average of train.ema
  worker::ReadVariable read;
  std::optional<worker::KernelPlan> kernel_plan;  // of the job; nullopt: none was made, or it cannot be read

  // The files to read: the chosen data set, in the format of the job's, or the job's data.eval. InvalidArgument: none
  // is chosen and the job has none, or tokens are chosen and the model takes none.
  absl::StatusOr<job::DataFiles> FilesOf(const DataChoice& choice) const;
  // Opens `files` in the form that the model takes, with labels or without. Codes of worker::OpenDataSource.
  absl::StatusOr<std::unique_ptr<worker::DataSource>> OpenData(job::DataFiles files, bool labels) const;
};

// Opens the trained model of a directory, with its job under `options.overrides`. `average_as_evaluated`: use the
// average if the job evaluates it, not only if it is asked for. Codes of TrainedModel::Open; InvalidArgument: the
// overrides.
absl::StatusOr<ModelToRun> OpenTrainedModel(const ModelRunOptions& options, bool average_as_evaluated);

// The untrained model of a job file, with its initial weights. Sets `exit_code` if it fails.
absl::StatusOr<ModelToRun> OpenJobModel(const ModelRunOptions& options, int& exit_code);

// The device that replays the kernel plan of the model's job, if this machine can; else the best one with new choices,
// and `assumed` says why. Codes of worker::MakeJobDevice; InvalidArgument: --device.
struct DeviceToRun {
  worker::MadeDevice made;
  bool replays = false;
  std::string assumed;  // "" if nothing was
};
absl::StatusOr<DeviceToRun> MakeDeviceToRun(const ModelToRun& model, const ModelRunOptions& options);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_MODEL_TO_RUN_H_
