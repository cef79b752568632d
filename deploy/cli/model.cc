// `lockstep model`: ONNX files and built-in architectures, without a job.
#include "deploy/cli/model.h"

#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status_macros.h"
#include "common/version/version.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/output_file.h"

namespace lockstep::cli {

absl::Status WriteModel(const Graph& graph, const VariableReader& read, int64_t batch, const std::string& path,
                        std::optional<int64_t> only_batch) {
  LS_ASSIGN_OR_RETURN(const OutputFile file, OutputFile::At(path));
  const OnnxWriteOptions options{.batch = batch, .only_batch = only_batch, .program = kVersion};
  LS_ASSIGN_OR_RETURN(const OnnxWritten written, WriteOnnx(graph, read, options, *file.folder, file.name));
  std::cout << absl::StreamFormat("wrote %s: opset %d, %d tensors, %.1f MiB%s\n", path, written.opset,
                                  graph.variables.size(), static_cast<double>(written.weight_bytes) / (1 << 20),
                                  written.external ? absl::StrCat(", weights in ", path, ".data") : "");
  if (!written.open_batch && !only_batch.has_value()) {
    std::cout << "the model computes with its batch: the file is for batches of " << batch << " alone\n";
  }
  return absl::OkStatus();
}

void AddModel(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("model", "Look at ONNX models, and write them");
  command->require_subcommand(1);
  AddModelOps(*command, exit_code);
  AddModelNew(*command, exit_code);
  AddModelExport(*command, exit_code);
  AddModelSample(*command, exit_code);
}

}  // namespace lockstep::cli
