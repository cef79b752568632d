// `lockstep checkpoint export`: the weights of a checkpoint in one safetensors file.
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "chief/checkpoint/safetensors_export.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/checkpoint_choice.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/output_file.h"
#include "deploy/cli/progress_line.h"

namespace lockstep::cli {
namespace {

struct ExportOptions {
  CheckpointChoice checkpoint;
  bool average = false;
  std::string path;
};

absl::Status Export(const ExportOptions& options) {
  LS_ASSIGN_OR_RETURN(const OutputFile file, OutputFile::At(options.path));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(options.checkpoint.directory));
  LS_ASSIGN_OR_RETURN(const chief::CheckpointReader checkpoint, OpenChosen(*place, options.checkpoint));
  const absl::string_view group = options.average ? kEmaGroup : kModelGroup;
  const uint64_t bytes = checkpoint.TensorBytes(group);
  if (options.average && bytes == 0) {
    return NoAverage(checkpoint);
  }
  absl::StatusOr<chief::SafetensorsExport> written;
  {
    ProgressLine progress(options.path, bytes);
    written = chief::ExportSafetensors(checkpoint, group, *file.folder, file.name,
                                       [&progress](uint64_t more) { progress.Advance(more); });
  }
  LS_RETURN_IF_ERROR(written.status());
  std::cout << EscapeControls(absl::StrFormat("wrote %s: %s of %s%s, %d tensors, %.1f MiB", options.path,
                                              checkpoint.path(), options.checkpoint.directory,
                                              options.average ? ", the average of the weights" : "", written->tensors,
                                              static_cast<double>(written->bytes) / (1 << 20)))
            << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddCheckpointExport(CLI::App& checkpoint, int& exit_code) {
  CLI::App* command = checkpoint.add_subcommand("export", "Write the weights of one into one safetensors file");
  auto options = std::make_shared<ExportOptions>();
  AddCheckpointChoice(*command, options->checkpoint);
  command->add_flag("--ema", options->average, "The average of the weights instead of the weights (train.ema)");
  command->add_option("-o,--output", options->path, "The safetensors file to write")->required();
  command->callback([options, &exit_code] {
    const absl::Status status = Export(*options);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, StorageExitCode(status));
  });
}

}  // namespace lockstep::cli
