// `lockstep model export`: the trained model of a job's directory, ready to answer, as an ONNX file.
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/metagraph/artifact_store.h"
#include "common/checkpoint_format/naming.h"
#include "common/graph/serialize.h"
#include "common/graph/serving_graph.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/local/local_storage.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/model.h"

namespace lockstep::cli {
namespace {

struct ExportOptions {
  std::string directory;
  std::string path;
  std::optional<int64_t> step;
};

absl::StatusOr<std::string> NameOfMetagraph(absl::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const MetaGraph metagraph, ParseMetaGraph(bytes));
  return Fingerprint(metagraph);
}

// A model is fed what the job fed it, which the file cannot say.
void PrintNormalisation(const MetaGraph& metagraph) {
  for (const SignatureInput& input : metagraph.signature) {
    if (input.role != InputRole::kFeature || input.normalisation == Normalisation{}) continue;
    const Normalisation& n = input.normalisation;
    std::cout << absl::StreamFormat("input '%s' is fed (stored * %g - mean) / std, as data.normalize of the job says",
                                    input.name, n.scale);
    if (n.mean.size() == 1) std::cout << absl::StreamFormat(": mean %g, std %g", n.mean[0], n.std[0]);
    std::cout << "\n";
  }
}

absl::Status Export(const ExportOptions& options) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<LocalStorage> storage, LocalStorage::Open(options.directory));
  LS_ASSIGN_OR_RETURN(const chief::CheckpointReader checkpoint, chief::OpenCheckpoint(*storage, options.step));
  LS_RETURN_IF_ERROR(checkpoint.VerifyContent());
  LS_ASSIGN_OR_RETURN(
      const std::string bytes,
      chief::LoadArtifact(*storage, layout::kMetagraphs, checkpoint.manifest().fingerprint(), NameOfMetagraph));
  LS_ASSIGN_OR_RETURN(const MetaGraph metagraph, ParseMetaGraph(bytes));
  const auto trained = [&](const Variable& variable) -> absl::StatusOr<Tensor> {
    LS_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(variable.dtype, variable.shape));
    const absl::Span<char> out(reinterpret_cast<char*>(tensor.data()), static_cast<size_t>(tensor.byte_size()));
    LS_RETURN_IF_ERROR(checkpoint.ReadTensor(variable.name, 0, out));
    return tensor;
  };
  std::cout << checkpoint.path() << " of " << options.directory << "\n";
  LS_RETURN_IF_ERROR(WriteModel(MakeServingGraph(metagraph), trained, metagraph.pass_batch, options.path));
  PrintNormalisation(metagraph);
  return absl::OkStatus();
}

}  // namespace

void AddModelExport(CLI::App& model, int& exit_code) {
  CLI::App* command = model.add_subcommand("export", "Write the trained model of a job for serving");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("dir", options->directory, "The job's directory")->required();
  command->add_option("-o,--output", options->path, "The ONNX file to write")->required();
  command->add_option("--step", options->step, "The checkpoint of this step (default: the newest that is whole)");
  command->callback([options, &exit_code] {
    const absl::Status status = Export(*options);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, StorageExitCode(status));
  });
}

}  // namespace lockstep::cli
