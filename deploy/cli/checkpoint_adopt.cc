// `lockstep checkpoint adopt`: a checkpoint that lies elsewhere becomes one of the job's again.
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "chief/server/job_upkeep.h"
#include "chief/term/term_claim.h"
#include "common/checkpoint_format/naming.h"
#include "common/job_place/job_place.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/place_option.h"
#include "deploy/cli/progress_line.h"

namespace lockstep::cli {
namespace {

struct AdoptOptions {
  std::string directory;
  std::string from;
  bool force = false;
};

absl::Status Adopt(const AdoptOptions& options) {
  const std::filesystem::path from(std::string(absl::StripSuffix(options.from, "/")));
  const std::string folder = from.has_parent_path() ? from.parent_path().string() : ".";
  const std::string name = from.filename().string();
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> source, JobPlace::Open(folder));
  LS_ASSIGN_OR_RETURN(const bool there, source->storage().Exists(JoinPath(name, layout::kManifest)));
  if (!there) {
    return absl::NotFoundError(absl::StrCat(options.from, " is no checkpoint: it holds no ", layout::kManifest,
                                            "; give the folder of one, step-000001200 of a backup or of set_aside/"));
  }
  LS_ASSIGN_OR_RETURN(const chief::CheckpointReader checkpoint,
                      chief::CheckpointReader::OpenFolder(source->storage(), name));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(options.directory));
  std::vector<std::string> messages;
  absl::StatusOr<std::string> adopted;
  {
    ProgressLine progress(options.from, 2 * checkpoint.TensorBytes());  // read, and read back
    adopted = chief::AdoptWithoutChief(*place, checkpoint, options.force, messages,
                                       [&progress](uint64_t more) { progress.Advance(more); });
  }
  for (const std::string& message : messages) std::cerr << "lockstep: " << EscapeControls(message) << "\n";
  LS_RETURN_IF_ERROR(adopted.status());
  std::cout << EscapeControls(*adopted) << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddCheckpointAdopt(CLI::App& checkpoint, int& exit_code) {
  CLI::App* command =
      checkpoint.add_subcommand("adopt", "Make a checkpoint that lies elsewhere one of the job's again");
  auto options = std::make_shared<AdoptOptions>();
  AddPlace(*command, "dir", options->directory, "The job's directory, or s3://BUCKET/PREFIX")->required();
  command
      ->add_option("from", options->from,
                   "The folder of the checkpoint: a backup, or one in set_aside/ (or in a bucket)")
      ->required();
  command->add_flag("--force", options->force,
                    "Also where the last chief does not answer and never said that it ended; one that runs all the "
                    "same ends with exit code 76");
  command->callback([options, &exit_code] {
    const absl::Status status = Adopt(*options);
    const ExitCode code = chief::IsFenced(status) ? kExitFenced : StorageExitCode(status);
    exit_code = status.ok() ? static_cast<int>(kExitDone) : Fail(status, code);
  });
}

}  // namespace lockstep::cli
