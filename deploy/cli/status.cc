// `lockstep status` and `lockstep stop`: how a job is, from its chief or its directory, and asking it to stop.
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/log/output.h"
#include "common/net/token.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/admin_client.h"
#include "deploy/cli/columns.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_state.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(5);
constexpr absl::Duration kWatchEvery = absl::Seconds(1);

struct ChiefPlace {
  std::string directory;
  std::string address;
  std::string token_file;
  bool json = false;
  bool watch = false;
};

absl::StatusOr<std::unique_ptr<AdminClient>> Connect(const ChiefPlace& place) {
  if (!place.directory.empty()) return AdminClient::ForDirectory(place.directory);
  absl::StatusOr<std::string> found = ReadCallerToken(place.token_file);
  if (!found.ok()) return absl::UnauthenticatedError(found.status().message());
  std::string token = *std::move(found);
  return std::make_unique<AdminClient>(place.address, std::move(token));
}

int Failed(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return Fail(status, kExitBadToken);
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kDataLoss:
      return Fail(status, StorageExitCode(status));
    default:
      return Fail(status, kExitChiefUnreachable);
  }
}

absl::StatusOr<JobState> Look(const ChiefPlace& place) {
  if (!place.directory.empty()) return ReadJobState(place.directory, kDeadline);
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<AdminClient> client, Connect(place));
  absl::StatusOr<proto::StatusReply> status = client->Status(kDeadline);
  if (status.ok()) return JobState{*std::move(status), true, std::nullopt, "", absl::Now()};
  if (!absl::IsUnavailable(status.status()) && !absl::IsDeadlineExceeded(status.status())) return status.status();
  return absl::UnavailableError(absl::StrCat("no chief answers at ", place.address,
                                             ": it has ended, or this machine does not reach it. On the chief's "
                                             "machine `lockstep status --dir DIR` tells more"));
}

// Replaces the last `lines` lines on the terminal by `text`, cut to its width. Returns the number of lines written.
int Redraw(const std::string& text, int lines) {
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  const size_t width = known ? size.ws_col - 1 : 79;
  if (lines > 0) std::cout << "\x1b[" << lines << "A";
  std::cout << "\r\x1b[J";
  const std::vector<std::string> rows = absl::StrSplit(absl::StripTrailingAsciiWhitespace(text), '\n');
  for (const std::string& row : rows) std::cout << CutToColumns(row, width) << "\n";
  std::cout << std::flush;
  return static_cast<int>(rows.size());
}

int Code(const JobState& state) { return state.answered || HasEnded(state) ? kExitDone : kExitChiefUnreachable; }

int Watch(const ChiefPlace& place) {
  const bool redraw = !place.json && StyleOf(STDOUT_FILENO).live;
  for (int lines = 0;;) {
    const absl::StatusOr<JobState> state = Look(place);
    if (!state.ok()) return Failed(state.status());
    const std::string text = place.json ? JobStateJson(*state, /*compact=*/true) : JobStateText(*state, absl::Now());
    if (redraw) {
      lines = Redraw(text, lines);
    } else {
      std::cout << text << std::flush;
    }
    if (!std::cout) return kExitDone;  // nobody reads on
    if (HasEnded(*state)) return kExitDone;
    absl::SleepFor(kWatchEvery);
  }
}

int Status(const ChiefPlace& place) {
  if (place.watch) return Watch(place);
  const absl::StatusOr<JobState> state = Look(place);
  if (!state.ok()) return Failed(state.status());
  std::cout << (place.json ? JobStateJson(*state, /*compact=*/false) : JobStateText(*state, absl::Now()));
  return Code(*state);
}

int Stop(const ChiefPlace& place) {
  auto client = Connect(place);
  if (!client.ok()) return Failed(client.status());
  const absl::Status stopped = (*client)->Stop("lockstep stop", kDeadline);
  if (absl::IsUnavailable(stopped) && !place.directory.empty()) {
    const absl::StatusOr<JobState> state = ReadJobState(place.directory, kDeadline);
    if (state.ok() && HasEnded(*state)) {
      std::cout << "the job is not running:\n" << JobStateText(*state, absl::Now());
      return kExitDone;
    }
  }
  if (!stopped.ok()) return Failed(stopped);
  std::cout << "asked the job to save and stop\n";
  return kExitDone;
}

std::shared_ptr<ChiefPlace> AddPlace(CLI::App& command) {
  auto place = std::make_shared<ChiefPlace>();
  CLI::Option_group* group = command.add_option_group("place", "Which job");
  group->add_option("--dir", place->directory, "The job's directory on this machine");
  group->add_option("--chief", place->address, "The chief's address, HOST:PORT");
  group->require_option(1);
  command.add_option("--token-file", place->token_file,
                     "The job's token (default: LOCKSTEP_TOKEN); not needed with --dir");
  return place;
}

}  // namespace

void AddStatus(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("status", "How a job is: running, done, stopped or not reached");
  auto place = AddPlace(*command);
  command->add_flag("--json", place->json, "For other programs");
  command->add_flag("--watch", place->watch, "Look every second until the job has ended; with --json a line each time");
  command->callback([place, &exit_code] { exit_code = Status(*place); });
}

void AddStop(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("stop", "Save and end a running job");
  auto place = AddPlace(*command);
  command->callback([place, &exit_code] { exit_code = Stop(*place); });
}

}  // namespace lockstep::cli
