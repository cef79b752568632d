// `lockstep checkpoint export`: the weights of a checkpoint in one safetensors file, or the checkpoint as TensorFlow
// has it.
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/checkpoint/safetensors_export.h"
#include "chief/checkpoint/tensorflow_export.h"
#include "common/graph/state_names.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/checkpoint_choice.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/output_file.h"
#include "deploy/cli/progress_line.h"
#include "deploy/cli/trained_model.h"

namespace lockstep::cli {
namespace {

constexpr char kSafetensors[] = "safetensors";
constexpr char kTensorflow[] = "tensorflow";

struct ExportOptions {
  CheckpointChoice checkpoint;
  std::string format = kSafetensors;
  chief::TensorflowChoice choice;  // `average` holds for every format
  std::string path;
};

// "wrote X: CHECKPOINT of DIR, ..., 8 tensors, 1.5 MiB"
void PrintWritten(const ExportOptions& options, const chief::CheckpointReader& checkpoint, absl::string_view what,
                  uint64_t bytes) {
  std::cout << EscapeControls(absl::StrFormat("wrote %s: %s of %s%s, %s, %.1f MiB", options.path, checkpoint.path(),
                                              options.checkpoint.directory,
                                              options.choice.average ? ", the average of the weights" : "", what,
                                              static_cast<double>(bytes) / (1 << 20)))
            << "\n";
}

absl::Status ExportAsSafetensors(const ExportOptions& options, const chief::CheckpointReader& checkpoint,
                                 const OutputFile& file) {
  const absl::string_view group = options.choice.average ? kEmaGroup : kModelGroup;
  absl::StatusOr<chief::SafetensorsExport> written;
  {
    ProgressLine progress(options.path, checkpoint.TensorBytes(group));
    written = chief::ExportSafetensors(checkpoint, group, *file.folder, file.name,
                                       [&progress](uint64_t more) { progress.Advance(more); });
  }
  LS_RETURN_IF_ERROR(written.status());
  PrintWritten(options, checkpoint, absl::StrCat(written->tensors, " tensors"), written->bytes);
  return absl::OkStatus();
}

absl::Status ExportAsTensorflow(const ExportOptions& options, const JobPlace& place,
                                const chief::CheckpointReader& checkpoint, const OutputFile& file) {
  LS_ASSIGN_OR_RETURN(const MetaGraph metagraph, MetagraphOf(place, checkpoint));
  LS_ASSIGN_OR_RETURN(const chief::TensorflowPlan plan,
                      chief::PlanTensorflow(metagraph, checkpoint.manifest().step(), options.choice));
  absl::StatusOr<chief::TensorflowExport> written;
  {
    ProgressLine progress(options.path, plan.TotalBytes());
    written = chief::ExportTensorflow(checkpoint, plan, *file.folder, file.name,
                                      [&progress](uint64_t more) { progress.Advance(more); });
  }
  LS_RETURN_IF_ERROR(written.status());
  PrintWritten(options, checkpoint,
               absl::StrCat(plan.weights, " variables of the model, ", plan.slots, " slots of the optimizer"),
               written->bytes);
  if (!plan.left_out.empty()) {
    std::cout << "left out, because they mean nothing to TensorFlow: " << EscapeControls(ListNames(plan.left_out))
              << "\n";
  }
  if (!written->is_newest) {
    std::cout << "the file `checkpoint` beside it is another program's, and still names what it named\n";
  }
  return absl::OkStatus();
}

absl::Status Export(const ExportOptions& options) {
  LS_ASSIGN_OR_RETURN(const OutputFile file, OutputFile::At(options.path));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(options.checkpoint.directory));
  LS_ASSIGN_OR_RETURN(const chief::CheckpointReader checkpoint, OpenChosen(*place, options.checkpoint));
  if (options.choice.average && checkpoint.TensorBytes(kEmaGroup) == 0) {
    return NoAverage(checkpoint);
  }
  if (options.format == kTensorflow) return ExportAsTensorflow(options, *place, checkpoint, file);
  return ExportAsSafetensors(options, checkpoint, file);
}

}  // namespace

void AddCheckpointExport(CLI::App& checkpoint, int& exit_code) {
  CLI::App* command = checkpoint.add_subcommand("export", "Write one for other programs: safetensors or TensorFlow");
  auto options = std::make_shared<ExportOptions>();
  AddCheckpointChoice(*command, options->checkpoint);
  command
      ->add_option("--format", options->format,
                   "safetensors (the weights in one file) or tensorflow (a V2 checkpoint with the optimizer's slots)")
      ->check(CLI::IsMember({kSafetensors, kTensorflow}));
  command->add_flag("--ema", options->choice.average, "The average of the weights instead of the weights (train.ema)");
  command->add_flag("--weights-only", options->choice.weights_only,
                    "Of tensorflow: no slots, so that assert_consumed() holds for the model alone");
  command->add_option("-o,--output", options->path, "The file to write; of tensorflow the prefix of its files")
      ->required();
  command->callback([options, &exit_code] {
    if (options->choice.weights_only && options->format != kTensorflow) {
      exit_code = Fail(absl::InvalidArgumentError("checkpoint export: --weights-only goes with --format tensorflow; "
                                                  "safetensors has the weights alone, so leave it out"),
                       kExitUsage);
      return;
    }
    const absl::Status status = Export(*options);
    const ExitCode failed = absl::IsAlreadyExists(status) ? kExitUsage : StorageExitCode(status);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, failed);
  });
}

}  // namespace lockstep::cli
