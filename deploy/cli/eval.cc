// `lockstep eval`: the loss and the figures of a model over a data set.
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/server/evaluation_board.h"
#include "common/graph/passes/training_graph.h"
#include "common/log/escape.h"
#include "common/protocol/evaluation.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/training/training_policy.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/eval_details.h"
#include "deploy/cli/model_to_run.h"
#include "worker/device/host/environment.h"
#include "worker/inference/evaluation_pass.h"
#include "worker/session/worker_main.h"
#include "worker/step/replica_plans.h"

namespace lockstep::cli {
namespace {

struct EvalOptions {
  ModelRunOptions run;
  DataChoice data;
  bool json = false;
  bool details = false;
};

struct Figures {
  int64_t samples = 0;
  EvaluationSums sums;
  std::optional<EvalDetails> details;
};

// With the kernels that the job evaluates with, where it does and they can be replayed.
absl::StatusOr<std::unique_ptr<worker::Plan>> PlanAsTheJob(const ModelToRun& model, const Graph& graph,
                                                           const std::string& label,
                                                           const std::map<std::string, std::byte*>& weights,
                                                           const DeviceToRun& device) {
  worker::PlanOptions planning{.label = label};
  if (device.replays) {
    worker::ApplyKernelPlan(*model.kernel_plan, &planning);
    if (!worker::Holds(*model.kernel_plan, label)) planning.choices = nullptr;
  }
  auto plan = worker::Plan::Make(device.made.device.get(), graph, weights, planning);
  if (plan.ok() || planning.choices == nullptr) return plan;
  planning.choices = nullptr;
  std::cerr << "lockstep: not with the kernels of the job, the last bits may differ: "
            << EscapeControls(plan.status().message()) << "\n";
  return worker::Plan::Make(device.made.device.get(), graph, weights, planning);
}

absl::StatusOr<EvaluationSums> SumsOf(const ModelToRun& model, const worker::DataSource& source, DeviceToRun& device,
                                      int64_t batch) {
  LS_ASSIGN_OR_RETURN(const EvaluationGraph evaluation, MakeEvaluationGraph(model.metagraph, batch));
  LS_ASSIGN_OR_RETURN(const worker::DeviceWeights weights,
                      worker::DeviceWeights::Load(*device.made.device, evaluation.graph.variables, model.read));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<worker::Plan> plan,
                      PlanAsTheJob(model, evaluation.graph, worker::kEvaluationLabel, weights.addresses(), device));
  LS_ASSIGN_OR_RETURN(const std::optional<EvaluationGraph> rest,
                      MakeRestGraph(model.metagraph, evaluation, batch, source.num_samples()));
  std::unique_ptr<worker::Plan> rest_plan;
  if (rest.has_value()) {
    const std::string label = worker::RestLabel(worker::RestOfSamples(source, batch));
    LS_ASSIGN_OR_RETURN(rest_plan, PlanAsTheJob(model, rest->graph, label, weights.addresses(), device));
  }
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<worker::EvaluationPass> pass,
                      worker::EvaluationPass::Make(plan.get(), rest_plan.get(), &source,
                                                   {.signature = model.metagraph.signature,
                                                    .has_accuracy = evaluation.has_accuracy,
                                                    .batch = batch,
                                                    .seed = model.job.train().seed()}));
  LS_RETURN_IF_ERROR(pass->RefreshVariables());
  return worker::EvaluateAll(*pass, model.step, model.job.train().logical_shards());
}

absl::StatusOr<Figures> Evaluate(const EvalOptions& options, const ModelToRun& model, const worker::DataSource& source,
                                 DeviceToRun& device) {
  const int64_t batch = EvalBatch(model.job);
  Figures figures{.samples = source.num_samples(), .sums = {}, .details = {}};
  LS_ASSIGN_OR_RETURN(figures.sums, SumsOf(model, source, device, batch));
  if (options.details) {
    LS_ASSIGN_OR_RETURN(figures.details, MakeEvalDetails(model, source, device, batch));
  }
  return figures;
}

std::vector<std::pair<std::string, double>> Metrics(const Figures& figures, const MetaGraph& metagraph) {
  std::vector<Metric> metrics = {Metric::kLoss};
  const auto is_sequence = [&] {
    for (const SignatureInput& input : metagraph.signature) {
      if (input.role == InputRole::kLabel) return input.shape.size() > 1;
    }
    return false;
  };
  if (figures.sums.counted > 0) {
    metrics.insert(metrics.end(), {Metric::kAccuracy, Metric::kTop5});
    if (is_sequence()) metrics.push_back(Metric::kPerplexity);
  }
  std::vector<std::pair<std::string, double>> named;
  for (const Metric metric : metrics) named.emplace_back(chief::MetricName(metric), MetricValue(metric, figures.sums));
  return named;
}

void Print(const EvalOptions& options, const ModelToRun& model, const Figures& figures) {
  const auto metrics = Metrics(figures, model.metagraph);
  if (options.json) {
    std::cout << absl::StreamFormat("{\"step\": %d, \"samples\": %d", model.step, figures.samples);
    for (const auto& [name, value] : metrics) std::cout << ", \"" << name << "\": " << JsonNumber(value);
    std::cout << (figures.details.has_value() ? DetailsJson(*figures.details) : "") << "}\n";
    return;
  }
  std::cout << EscapeControls(model.description) << ", " << figures.samples << " samples:\n";
  for (const auto& [name, value] : metrics) std::cout << absl::StreamFormat("%-12s %.6f\n", name, value);
  if (figures.details.has_value()) std::cout << DetailsText(*figures.details);
}

int Eval(const EvalOptions& options) {
  if (device::ClearKernelEnvironment().must_restart) return Fail(worker::ExecuteAgain(), kExitBug);
  int exit_code = kExitBadJob;
  const TrainedModelChoice& choice = options.run.model;
  const bool is_job = std::filesystem::is_regular_file(choice.directory);
  if (is_job && (choice.step.has_value() || choice.best || choice.average)) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
                    "'", choice.directory, "' is a job file; --step, --best and --ema are of a job's directory")),
                kExitUsage);
  }
  const absl::StatusOr<ModelToRun> model =
      is_job ? OpenJobModel(options.run, exit_code) : OpenTrainedModel(options.run, /*average_as_evaluated=*/true);
  if (!model.ok()) return Fail(model.status(), is_job ? exit_code : StorageExitCode(model.status()));
  const absl::StatusOr<job::DataFiles> files = model->FilesOf(options.data);
  if (!files.ok()) return Fail(files.status(), kExitBadJob);
  const absl::StatusOr<std::unique_ptr<worker::DataSource>> source = model->OpenData(*files, /*labels=*/true);
  if (!source.ok()) return Fail(source.status(), kExitBadData);
  absl::StatusOr<DeviceToRun> device = MakeDeviceToRun(*model, options.run);
  if (!device.ok()) return Fail(device.status(), kExitBadJob);
  if (!device->assumed.empty()) std::cerr << "lockstep: " << EscapeControls(device->assumed) << "\n";
  const absl::StatusOr<Figures> figures = Evaluate(options, *model, **source, *device);
  if (!figures.ok()) return Fail(figures.status(), StorageExitCode(figures.status()));
  Print(options, *model, *figures);
  return kExitDone;
}

}  // namespace

void AddEval(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("eval", "Evaluate a trained model, or the model of a job file as it begins");
  auto options = std::make_shared<EvalOptions>();
  AddModelRunOptions(*command, options->run);
  AddDataChoice(*command, options->data, /*labels=*/true);
  command->add_flag("--details", options->details,
                    "Precision, recall, F1 and AUC of each class and the confusions; of a regression its errors");
  command->add_flag("--json", options->json, "One line of JSON, every figure to its last digit");
  command->callback([options, &exit_code] { exit_code = Eval(*options); });
}

}  // namespace lockstep::cli
