// `lockstep top`: a running job and its workers, drawn each second.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "common/clock/clock.h"
#include "common/log/output.h"
#include "common/status/exit_code.h"
#include "deploy/cli/chief_place.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/full_screen.h"
#include "deploy/cli/place_option.h"
#include "deploy/cli/top_view.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kLookDeadline = absl::Seconds(2);
constexpr absl::Duration kEvery = absl::Seconds(1);

struct TopQuestion {
  ChiefPlace place;
  bool once = false;
};

// Scrolls and sorts as the key says. False: the person has seen enough.
bool Obey(const KeyPress& press, size_t page, TopSettings& settings) {
  switch (press.key) {
    case Key::kQuit:
      return false;
    case Key::kUp:
      settings.first -= std::min<size_t>(settings.first, 1);
      break;
    case Key::kDown:
      ++settings.first;
      break;
    case Key::kPageUp:
      settings.first -= std::min(settings.first, page);
      break;
    case Key::kPageDown:
      settings.first += page;
      break;
    case Key::kHome:
      settings.first = 0;
      break;
    case Key::kEnd:
      settings.first = static_cast<size_t>(-1) / 2;
      break;
    case Key::kCharacter:
      if (press.character == 'n') settings.order = TopOrder::kName;
      if (press.character == 's') settings.order = TopOrder::kOwnTime;
      if (press.character == 'w') settings.order = TopOrder::kWaiting;
      break;
    case Key::kNone:
      break;
  }
  return true;
}

// Until a key ends it.
int OnScreen(const TopQuestion& question, JobState state) {
  TopSettings settings;
  settings.colour = StyleOf(STDOUT_FILENO).colour;
  absl::Status trouble;
  {
    FullScreen screen;
    settings.keys = screen.has_keys();
    absl::Time next_look = SteadyNow() + kEvery;
    for (;;) {
      const ScreenSize size = SizeOfScreen();
      settings.columns = size.columns;
      settings.rows = size.rows;
      if (!screen.Draw(TopRows(state, settings))) return kExitDone;
      const KeyPress press = screen.Wait(next_look - SteadyNow());
      if (!Obey(press, std::max<size_t>(1, size.rows / 2), settings)) return ExitCodeOf(state);
      if (SteadyNow() < next_look) continue;
      absl::StatusOr<JobState> now = LookAt(question.place, kLookDeadline);
      next_look = SteadyNow() + kEvery;
      if (now.ok()) {
        state = *std::move(now);
      } else {
        trouble = now.status();
        break;
      }
    }
  }
  return ChiefFailure(trouble);
}

// Where nothing can be drawn again: text, each second until the job has ended.
int AsText(const TopQuestion& question, JobState state) {
  TopSettings settings;
  settings.columns = isatty(STDOUT_FILENO) == 1 ? SizeOfScreen().columns : 160;
  for (;;) {
    for (const std::string& row : TopRows(state, settings)) std::cout << row << "\n";
    std::cout << std::flush;
    if (question.once || HasEnded(state) || !std::cout) return ExitCodeOf(state);
    std::cout << "\n";
    absl::SleepFor(kEvery);
    absl::StatusOr<JobState> now = LookAt(question.place, kLookDeadline);
    if (!now.ok()) return ChiefFailure(now.status());
    state = *std::move(now);
  }
}

int Top(const TopQuestion& question) {
  absl::StatusOr<JobState> state = LookAt(question.place, kLookDeadline);
  if (!state.ok()) return ChiefFailure(state.status());
  const bool screen = !question.once && StyleOf(STDOUT_FILENO).live;
  return screen ? OnScreen(question, *std::move(state)) : AsText(question, *std::move(state));
}

}  // namespace

void AddTop(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("top", "A job and its workers on the whole screen, drawn each second");
  auto question = std::make_shared<TopQuestion>();
  CLI::Option_group* place = command->add_option_group("place", "Which job");
  AddPlace(*place, "directory", question->place.directory, "The job's directory, or s3://BUCKET/PREFIX");
  place->add_option("--chief", question->place.address, "The chief's address, HOST:PORT");
  place->require_option(1);
  command->add_option("--token-file", question->place.token_file,
                      "The job's token (default: LOCKSTEP_TOKEN); not needed with a directory");
  command->add_flag("--once", question->once, "Print it once, all workers, and end");
  command->callback([question, &exit_code] { exit_code = Top(*question); });
}

}  // namespace lockstep::cli
