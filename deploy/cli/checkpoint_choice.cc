#include "deploy/cli/checkpoint_choice.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "chief/checkpoint/checkpoints_of_job.h"
#include "common/checkpoint_format/bucket_naming.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "deploy/cli/place_option.h"

namespace lockstep::cli {
namespace {

// The step of the best checkpoint: by the log, or, in a directory of a program without one, by the hint.
absl::StatusOr<int64_t> BestStepOf(const JobPlace& place) {
  const Storage& storage = place.storage();
  LS_ASSIGN_OR_RETURN(const std::optional<CommitRecord> record, chief::JobLog::Of(place)->Read());
  if (record.has_value()) {
    const auto best = layout::ParseCheckpointFolder(BaseName(record->best()));
    if (best.has_value()) return best->step;
  }
  absl::StatusOr<std::string> name = absl::NotFoundError("the log names none");
  if (!record.has_value()) name = ReadWholeFile(storage, layout::kBest, 256);
  if (absl::IsNotFound(name.status())) {
    return absl::NotFoundError(absl::StrCat("there is no best checkpoint in ", storage.Describe(""),
                                            ": the job has no `checkpoint.keep_best`, or nothing was evaluated yet; "
                                            "leave out --best"));
  }
  LS_RETURN_IF_ERROR(name.status());
  const auto folder = layout::ParseCheckpointFolder(absl::StripTrailingAsciiWhitespace(*name));
  if (folder.has_value()) return folder->step;
  return absl::DataLossError(
      absl::StrCat(storage.Describe(layout::kBest), " names no checkpoint; give the step with --step"));
}

}  // namespace

void AddCheckpointChoice(CLI::App& command, CheckpointChoice& choice) {
  AddPlace(command, "dir", choice.directory, "The job's directory, or s3://BUCKET/PREFIX")->required();
  CLI::Option* const step =
      command.add_option("--step", choice.step, "The checkpoint of this step (default: the newest that is whole)")
          ->check(CLI::NonNegativeNumber);
  command.add_flag("--best", choice.best, "The best checkpoint (checkpoint.keep_best)")->excludes(step);
}

absl::StatusOr<chief::CheckpointReader> OpenChosen(const JobPlace& place, const CheckpointChoice& choice) {
  std::optional<int64_t> step = choice.step;
  if (choice.best) {
    LS_ASSIGN_OR_RETURN(step, BestStepOf(place));
  }
  LS_ASSIGN_OR_RETURN(const chief::CheckpointPaths paths, chief::CheckpointsOfJob(place));
  return chief::OpenCheckpoint(place.storage(), paths, step);
}

absl::Status NoAverage(const chief::CheckpointReader& checkpoint) {
  return absl::FailedPreconditionError(
      absl::StrCat(checkpoint.path(), " holds no average of the weights: the job has no `train.ema`; leave out --ema"));
}

}  // namespace lockstep::cli
