// `lockstep checkpoint pin|unpin|rm`: through the job's chief while one runs, else in its place.
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/server/job_upkeep.h"
#include "chief/term/term_claim.h"
#include "common/job_place/job_place.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/admin_client.h"
#include "deploy/cli/chief_place.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/place_option.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(35);  // the chief itself gives up before

struct ChangeOptions {
  std::string directory;
  int64_t step = 0;
  bool force = false;
};

proto::ChangeCheckpointRequest::Change ProtoOfChange(chief::CheckpointChange change) {
  switch (change) {
    case chief::CheckpointChange::kPin:
      return proto::ChangeCheckpointRequest::CHANGE_PIN;
    case chief::CheckpointChange::kUnpin:
      return proto::ChangeCheckpointRequest::CHANGE_UNPIN;
    case chief::CheckpointChange::kRemove:
      return proto::ChangeCheckpointRequest::CHANGE_REMOVE;
  }
  return proto::ChangeCheckpointRequest::CHANGE_UNSPECIFIED;
}

// Nullopt: no chief listens where the last one did.
std::optional<absl::StatusOr<std::string>> AskChief(const AdminClient& client, chief::CheckpointChange change,
                                                    int64_t step) {
  proto::ChangeCheckpointRequest request;
  request.set_change(ProtoOfChange(change));
  request.set_step(step);
  absl::StatusOr<std::string> text = client.ChangeCheckpoint(request, kDeadline);
  if (absl::IsUnavailable(text.status())) return std::nullopt;
  return text;
}

absl::StatusOr<std::string> ActAsChief(chief::CheckpointChange change, const ChangeOptions& options) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(options.directory));
  std::vector<std::string> messages;
  absl::StatusOr<std::string> changed =
      chief::ChangeWithoutChief(*place, change, options.step, options.force, messages);
  for (const std::string& message : messages) std::cerr << "lockstep: " << EscapeControls(message) << "\n";
  return changed;
}

int Change(chief::CheckpointChange change, const ChangeOptions& options) {
  std::optional<absl::StatusOr<std::string>> changed;
  const auto client = AdminClient::ForDirectory(options.directory);
  if (absl::IsPermissionDenied(client.status())) return ChiefFailure(client.status());
  if (client.ok()) changed = AskChief(**client, change, options.step);
  if (!changed.has_value()) changed = ActAsChief(change, options);
  const absl::Status status = changed->status();
  if (!status.ok()) {
    const bool of_chief = absl::IsPermissionDenied(status) || absl::IsUnauthenticated(status) ||
                          absl::IsDeadlineExceeded(status) || absl::IsUnimplemented(status);
    if (of_chief) return ChiefFailure(status);
    return Fail(status, chief::IsFenced(status) ? kExitFenced : StorageExitCode(status));
  }
  std::cout << EscapeControls(**changed) << "\n";
  return kExitDone;
}

void AddChange(CLI::App& parent, const char* name, const char* what, chief::CheckpointChange change, int& exit_code) {
  CLI::App* command = parent.add_subcommand(name, what);
  auto options = std::make_shared<ChangeOptions>();
  AddPlace(*command, "dir", options->directory, "The job's directory, or s3://BUCKET/PREFIX")->required();
  command->add_option("--step", options->step, "The checkpoint's step, as `checkpoint ls` shows it")
      ->required()
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--force", options->force,
                    "Also where the last chief does not answer and never said that it ended; one that runs all the "
                    "same ends with exit code 76");
  command->callback([options, change, &exit_code] { exit_code = Change(change, *options); });
}

}  // namespace

void AddCheckpointChanges(CLI::App& checkpoint, int& exit_code) {
  AddChange(checkpoint, "pin", "Keep one for good: retention leaves it", chief::CheckpointChange::kPin, exit_code);
  AddChange(checkpoint, "unpin", "Leave it to retention again", chief::CheckpointChange::kUnpin, exit_code);
  AddChange(checkpoint, "rm", "Remove one that the job does not need", chief::CheckpointChange::kRemove, exit_code);
}

}  // namespace lockstep::cli
