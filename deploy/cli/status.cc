// `lockstep status` and `lockstep stop`: how a job is, from its chief or its directory, and asking it to stop.
#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "common/log/output.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/admin_client.h"
#include "deploy/cli/chief_place.h"
#include "deploy/cli/columns.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/job_state.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kStatusDeadline = absl::Seconds(5);
constexpr absl::Duration kWatchEvery = absl::Seconds(1);

struct StatusQuestion {
  std::shared_ptr<ChiefPlace> place;
  bool json = false;
  bool watch = false;
};

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

int Watch(const StatusQuestion& question) {
  const bool redraw = !question.json && StyleOf(STDOUT_FILENO).live;
  for (int lines = 0;;) {
    const absl::StatusOr<JobState> state = LookAt(*question.place, kStatusDeadline);
    if (!state.ok()) return ChiefFailure(state.status());
    const std::string text = question.json ? JobStateJson(*state, /*compact=*/true) : JobStateText(*state, absl::Now());
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

int Status(const StatusQuestion& question) {
  if (question.watch) return Watch(question);
  const absl::StatusOr<JobState> state = LookAt(*question.place, kStatusDeadline);
  if (!state.ok()) return ChiefFailure(state.status());
  std::cout << (question.json ? JobStateJson(*state, /*compact=*/false) : JobStateText(*state, absl::Now()));
  return ExitCodeOf(*state);
}

int Stop(const ChiefPlace& place) {
  auto client = ConnectTo(place);
  if (!client.ok()) return ChiefFailure(client.status());
  const absl::Status stopped = (*client)->Stop("lockstep stop", kStatusDeadline);
  if (absl::IsUnavailable(stopped) && !place.directory.empty()) {
    const absl::StatusOr<JobState> state = ReadJobState(place.directory, kStatusDeadline);
    if (state.ok() && HasEnded(*state)) {
      std::cout << "the job is not running:\n" << JobStateText(*state, absl::Now());
      return kExitDone;
    }
  }
  if (!stopped.ok()) return ChiefFailure(stopped);
  std::cout << "asked the job to save and stop\n";
  return kExitDone;
}

}  // namespace

void AddStatus(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("status", "How a job is: running, done, stopped or not reached");
  auto question = std::make_shared<StatusQuestion>();
  question->place = AddChiefPlace(*command);
  command->add_flag("--json", question->json, "For other programs");
  command->add_flag("--watch", question->watch,
                    "Look every second until the job has ended; with --json a line each time");
  command->callback([question, &exit_code] { exit_code = Status(*question); });
}

void AddStop(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("stop", "Save and end a running job");
  auto place = AddChiefPlace(*command);
  command->callback([place, &exit_code] { exit_code = Stop(*place); });
}

}  // namespace lockstep::cli
