// `lockstep checkpoint export`: the weights of a checkpoint in one safetensors file.
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/checkpoint/safetensors_export.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/local/local_storage.h"
#include "deploy/cli/checkpoint_choice.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/progress_line.h"

namespace lockstep::cli {
namespace {

struct ExportOptions {
  CheckpointChoice checkpoint;
  bool average = false;
  std::string path;
};

uint64_t BytesOf(const Manifest& manifest, absl::string_view group) {
  uint64_t bytes = 0;
  for (const ManifestTensor& tensor : manifest.tensors()) {
    if (tensor.group() == group) bytes += tensor.end() - tensor.begin();
  }
  return bytes;
}

absl::Status Export(const ExportOptions& options) {
  const std::filesystem::path file(options.path);
  if (!file.has_filename())
    return absl::InvalidArgumentError(absl::StrCat("'", options.path, "' is no name of a file"));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<LocalStorage> home,
                      LocalStorage::Open(file.has_parent_path() ? file.parent_path().string() : "."));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(options.checkpoint.directory));
  LS_ASSIGN_OR_RETURN(const chief::CheckpointReader checkpoint, OpenChosen(*place, options.checkpoint));
  const absl::string_view group = options.average ? kEmaGroup : kModelGroup;
  const uint64_t bytes = BytesOf(checkpoint.manifest(), group);
  if (options.average && bytes == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        checkpoint.path(), " holds no average of the weights: the job has no `train.ema`; leave out --ema"));
  }
  absl::StatusOr<chief::SafetensorsExport> written;
  {
    ProgressLine progress(options.path, bytes);
    written = chief::ExportSafetensors(checkpoint, group, *home, file.filename().string(),
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
