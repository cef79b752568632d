// `lockstep model export`: the trained model of a job's directory, ready to answer, as an ONNX file.
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/graph/passes/serving_graph.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/model.h"
#include "deploy/cli/trained_model.h"

namespace lockstep::cli {
namespace {

struct ModelExportOptions {
  TrainedModelChoice model;
  std::string path;
  std::optional<int64_t> batch;
};

// A model is fed what the job fed it, which the file cannot say.
void PrintNormalisation(const MetaGraph& metagraph) {
  for (const SignatureInput& input : metagraph.signature) {
    if (input.role != InputRole::kFeature || input.normalisation == Normalisation{}) continue;
    const Normalisation& n = input.normalisation;
    std::cout << absl::StreamFormat("input '%s' is fed (stored * %g - mean) / std, as data.normalize of the job says",
                                    EscapeControls(input.name), n.scale);
    if (n.mean.size() == 1) std::cout << absl::StreamFormat(": mean %g, std %g", n.mean[0], n.std[0]);
    std::cout << "\n";
  }
}

absl::Status ExportModel(const ModelExportOptions& options) {
  LS_ASSIGN_OR_RETURN(const TrainedModel model, TrainedModel::Open(options.model));
  const MetaGraph& metagraph = model.metagraph();
  const auto trained = [&](const Variable& variable) { return model.Read(variable); };
  std::cout << model.Describe() << "\n";
  if (model.has_other_weights()) {
    std::cout << "these are the weights as they were trained; --ema writes their average\n";
  }
  LS_RETURN_IF_ERROR(
      WriteModel(MakeServingGraph(metagraph), trained, metagraph.pass_batch, options.path, options.batch));
  PrintNormalisation(metagraph);
  return absl::OkStatus();
}

}  // namespace

void AddModelExport(CLI::App& model, int& exit_code) {
  CLI::App* command = model.add_subcommand("export", "Write the trained model of a job for serving");
  auto options = std::make_shared<ModelExportOptions>();
  AddTrainedModelChoice(*command, options->model);
  command->add_option("-o,--output", options->path, "The ONNX file to write")->required();
  command->add_option("--batch", options->batch, "Samples that the file is for at once (default: any number)")
      ->check(CLI::PositiveNumber);
  command->callback([options, &exit_code] {
    const absl::Status status = ExportModel(*options);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, StorageExitCode(status));
  });
}

}  // namespace lockstep::cli
