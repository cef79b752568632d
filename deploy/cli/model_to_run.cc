#include "deploy/cli/model_to_run.h"

#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/metagraph/artifact_store.h"
#include "chief/server/job_setup.h"
#include "common/checkpoint_format/naming.h"
#include "common/graph/picked_rows.h"
#include "common/graph/state_names.h"
#include "common/log/escape.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/device/choice/evaluate_node.h"
#include "worker/session/inspect_data.h"

namespace lockstep::cli {
namespace {

std::optional<worker::KernelPlan> ReadableKernelPlan(const absl::StatusOr<std::string>& bytes) {
  if (!bytes.ok()) return std::nullopt;
  absl::StatusOr<worker::KernelPlan> plan = worker::ParseKernelPlan(*bytes);
  return plan.ok() ? std::optional(*std::move(plan)) : std::nullopt;
}

}  // namespace

void AddModelRunOptions(CLI::App& command, ModelRunOptions& options) {
  AddTrainedModelChoice(command, options.model);
  command.add_option("--set", options.overrides, "Override a setting of the job: key=value")->allow_extra_args(false);
  command.add_option("--device", options.device, "What to compute on: auto, cpu, cuda or cuda:N")
      ->capture_default_str();
}

void AddDataChoice(CLI::App& command, DataChoice& choice, bool labels) {
  CLI::Option* const inputs =
      command.add_option("--inputs", choice.inputs, "A data set in place of the job's data.eval, read as that is");
  command.add_option("--tokens", choice.tokens, "A file of tokens in place of it")->excludes(inputs);
  if (!labels) return;
  command.add_option("--labels", choice.labels, "The labels, where they lie in a file of their own")->needs(inputs);
}

absl::StatusOr<job::DataFiles> ModelToRun::FilesOf(const DataChoice& choice) const {
  const job::Data& data = job.data();
  job::DataFiles files = data.has_eval() ? data.eval() : data.train();
  if (choice.inputs.empty() && choice.tokens.empty()) {
    if (data.has_eval()) return files;
    return absl::InvalidArgumentError("the job has no data.eval; name a data set with --inputs or --tokens");
  }
  const int64_t length = files.sequence_length();
  for (const auto clear :
       {&job::DataFiles::clear_sha256, &job::DataFiles::clear_format, &job::DataFiles::clear_inputs,
        &job::DataFiles::clear_labels, &job::DataFiles::clear_tokens, &job::DataFiles::clear_sequence_length}) {
    (files.*clear)();
  }
  if (!choice.inputs.empty()) files.set_inputs(choice.inputs);
  if (!choice.labels.empty()) files.set_labels(choice.labels);
  if (choice.tokens.empty()) return files;
  if (length == 0) return absl::InvalidArgumentError("--tokens is for a job that reads tokens; use --inputs");
  files.set_tokens(choice.tokens);
  files.set_sequence_length(length);
  return files;
}

absl::StatusOr<std::unique_ptr<worker::DataSource>> ModelToRun::OpenData(job::DataFiles files, bool labels) const {
  worker::FeedOptions feed = worker::FeedOptionsOf(job, metagraph);
  if (!labels) {
    feed.labels = worker::Labels::kNone;
    files.clear_sha256();  // that of the job is over the labels, too
  }
  for (worker::FeedInput& input : feed.inputs) {
    for (const SignatureInput& described : metagraph.signature) {
      if (described.field == input.name) input.range = PickedRows(metagraph.forward, described.name);
    }
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<worker::DataSource> source, worker::OpenDataSource(files, feed));
  if (labels && !source->classes().empty()) {
    const std::vector<std::string> trained(job.data().train().classes().begin(), job.data().train().classes().end());
    if (trained.empty()) {
      std::cerr << "lockstep: the job does not say what the classes are called that the model was trained on, so it is "
                   "assumed that they are, in this order: "
                << EscapeControls(ListNames(source->classes())) << "\n";
    }
    if (!trained.empty() && trained != source->classes()) {
      return absl::InvalidArgumentError(absl::StrCat(
          files.inputs(), ": has the classes ", ListNames(source->classes()), ", the model was trained on ",
          ListNames(trained), "; classes are numbered in the order of their names, so the folders must be the same"));
    }
  }
  return source;
}

absl::StatusOr<ModelToRun> OpenTrainedModel(const ModelRunOptions& options, bool average_as_evaluated) {
  LS_ASSIGN_OR_RETURN(TrainedModel first, TrainedModel::Open(options.model));
  ModelToRun run;
  LS_ASSIGN_OR_RETURN(const std::string text, first.checkpoint().ReadJob());
  LS_ASSIGN_OR_RETURN(run.job, ParseJob(text, options.model.directory + "/job.yaml", options.overrides));
  if (average_as_evaluated && run.job.eval().weights() == job::Eval::WEIGHTS_EMA) first.UseAverage();
  const auto model = std::make_shared<TrainedModel>(std::move(first));
  const Manifest& manifest = model->checkpoint().manifest();
  run.metagraph = model->metagraph();
  run.step = static_cast<int64_t>(manifest.step());
  run.description = model->Describe();
  run.digest = manifest.state_digest();
  run.average = model->is_average();
  run.read = [model](const Variable& variable) { return model->Read(variable); };
  if (!manifest.kernel_plan().empty()) {
    run.kernel_plan =
        ReadableKernelPlan(chief::LoadArtifact(model->checkpoint().storage(), layout::kPlans, manifest.kernel_plan(),
                                               [](absl::string_view bytes) { return worker::KernelPlanHash(bytes); }));
  }
  return run;
}

absl::StatusOr<ModelToRun> OpenJobModel(const ModelRunOptions& options, int& exit_code) {
  chief::ChiefOptions chief{.job_path = options.model.directory, .overrides = options.overrides};
  chief.inspect_data = worker::InspectData;
  chief.evaluate_node = device::EvaluateNode;
  LS_ASSIGN_OR_RETURN(chief::JobSetup setup, chief::SetUpJob(chief, exit_code));
  LS_ASSIGN_OR_RETURN(chief::InitialState initial, chief::InitialStateOf(setup, exit_code));
  const auto tensors = std::make_shared<std::vector<Tensor>>(std::move(initial.tensors));
  ModelToRun run;
  run.job = setup.job;
  run.metagraph = setup.metagraph;
  run.description = absl::StrCat("the model of ", options.model.directory, " as it begins");
  run.read = [tensors, layout = setup.layout](const Variable& variable) -> absl::StatusOr<Tensor> {
    const int index = layout.Find(variable.name);
    LS_CHECK(index >= 0, "the state holds every variable");
    return (*tensors)[static_cast<size_t>(index)].Clone();
  };
  return run;
}

absl::StatusOr<DeviceToRun> MakeDeviceToRun(const ModelToRun& model, const ModelRunOptions& options) {
  LS_ASSIGN_OR_RETURN(device::WorkerDevice where, device::ParseWorkerDevice(options.device));
  where.local_rank = options.local_rank;
  DeviceToRun run;
  if (model.kernel_plan.has_value()) {
    absl::StatusOr<worker::MadeDevice> replaying = worker::MakeJobDevice(model.job, &*model.kernel_plan, where);
    if (replaying.ok()) {
      run.made = *std::move(replaying);
      run.replays = true;
      return run;
    }
    run.assumed =
        absl::StrCat("not with the kernels of the job, the last bits may differ: ", replaying.status().message());
  }
  LS_ASSIGN_OR_RETURN(run.made, worker::MakeJobDevice(model.job, nullptr, where));
  return run;
}

}  // namespace lockstep::cli
