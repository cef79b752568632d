#include "deploy/cli/chief_place.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/net/token.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/place_option.h"

namespace lockstep::cli {

std::shared_ptr<ChiefPlace> AddChiefPlace(CLI::App& command) {
  auto place = std::make_shared<ChiefPlace>();
  CLI::Option_group* group = command.add_option_group("place", "Which job");
  AddPlace(*group, "--dir", place->directory, "The job's directory on this machine, or s3://BUCKET/PREFIX");
  group->add_option("--chief", place->address, "The chief's address, HOST:PORT");
  group->require_option(1);
  command.add_option("--token-file", place->token_file,
                     "The job's token (default: LOCKSTEP_TOKEN); not needed with --dir");
  return place;
}

absl::StatusOr<std::unique_ptr<AdminClient>> ConnectTo(const ChiefPlace& place) {
  if (!place.directory.empty()) return AdminClient::ForDirectory(place.directory);
  const absl::StatusOr<std::string> found = ReadCallerToken(place.token_file);
  if (!found.ok()) return absl::UnauthenticatedError(found.status().message());
  const absl::StatusOr<CallerKey> key = CallerKeyOf(*found, Role::kAdmin);
  if (!key.ok()) return absl::UnauthenticatedError(key.status().message());
  return std::make_unique<AdminClient>(place.address, *key);
}

absl::StatusOr<JobState> LookAt(const ChiefPlace& place, absl::Duration deadline) {
  if (!place.directory.empty()) return ReadJobState(place.directory, deadline);
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<AdminClient> client, ConnectTo(place));
  absl::StatusOr<proto::StatusReply> status = client->Status(deadline);
  if (status.ok()) return JobState{*std::move(status), true, std::nullopt, "", absl::Now(), std::nullopt};
  if (!absl::IsUnavailable(status.status()) && !absl::IsDeadlineExceeded(status.status())) return status.status();
  return absl::UnavailableError(absl::StrCat("no chief answers at ", place.address,
                                             ": it has ended, or this machine does not reach it. On the chief's "
                                             "machine `lockstep status --dir DIR` tells more"));
}

int ChiefFailure(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return Fail(status, kExitBadToken);
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
      return Fail(status, StorageExitCode(status));
    case absl::StatusCode::kInvalidArgument:
      return Fail(status, kExitUsage);
    default:
      return Fail(status, kExitChiefUnreachable);
  }
}

}  // namespace lockstep::cli
