// Records the events and actions of a core as lines of text, and replays them: the same events at the same instants
// must give a fresh core the same actions, which every core here promises. A record holds, one per line,
//
//   C <configuration>            what the core was made from, first
//   E <nanoseconds> <event>      an event and when it came
//   A <action>                   each action that it gave, in order
//
//   std::string record = RecordConfig(policy, recovered);          once
//   record += RecordStep(now, event, actions);                     after every step of the core
//
// A record whose last lines are torn (the process was killed) is replayed up to the last complete event.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_RECORDING_H_
#define LOCKSTEP_COMMON_PROTOCOL_RECORDING_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "common/protocol/text.h"
#include "common/status/status_macros.h"

namespace lockstep {

template <typename Config>
std::string RecordConfig(const Config& config) {
  return absl::StrCat("C ", text::ToText(config), "\n");
}

template <typename Event, typename Action>
std::string RecordStep(absl::Time now, const Event& event, const std::vector<Action>& actions) {
  std::string lines = absl::StrCat("E ", text::ToText(now), " ", text::ToText(event), "\n");
  for (const Action& action : actions) absl::StrAppend(&lines, "A ", text::ToText(action), "\n");
  return lines;
}

struct Replayed {
  size_t events = 0;
  size_t actions = 0;
};

// Makes a core by `make_core(const Config&)`, feeds it the recorded events and compares its actions with the recorded
// ones. DataLoss: the record cannot be read. Internal, naming the line and both actions: the core decided otherwise.
template <typename Config, typename Event, typename MakeCore>
absl::StatusOr<Replayed> Replay(absl::string_view record, MakeCore make_core) {
  // The text after the last newline is torn; the actions of the last event may be incomplete too.
  record = record.substr(0, record.rfind('\n') == absl::string_view::npos ? 0 : record.rfind('\n'));
  const std::vector<absl::string_view> lines = absl::StrSplit(record, '\n');
  Config config;
  if (lines.empty() || !absl::StartsWith(lines[0], "C ")) return absl::DataLossError("the record has no first line");
  LS_RETURN_IF_ERROR(text::FromText(lines[0].substr(2), config));
  auto core = make_core(config);
  Replayed replayed;
  for (size_t i = 1; i < lines.size();) {
    absl::string_view line = lines[i];
    if (!absl::ConsumePrefix(&line, "E ")) {
      return absl::DataLossError(absl::StrCat("line ", i + 1, " of the record is no event"));
    }
    text::Reader reader(line);
    absl::Time now;
    reader.Get(now);
    reader.Skip(" ");
    Event event;
    reader.Get(event);
    if (!reader.ok()) return absl::DataLossError(absl::StrCat("line ", i + 1, " of the record cannot be read"));
    const auto actions = core.Step(now, event);
    ++replayed.events;
    ++i;
    for (size_t a = 0; a < actions.size(); ++a, ++i) {
      if (i == lines.size()) return replayed;  // torn
      const std::string again = absl::StrCat("A ", text::ToText(actions[a]));
      if (lines[i] != again) {
        return absl::InternalError(
            absl::StrCat("line ", i + 1, ": the record has\n  ", lines[i], "\nbut the core now decides\n  ", again));
      }
      ++replayed.actions;
    }
    if (i < lines.size() && absl::StartsWith(lines[i], "A ")) {
      return absl::InternalError(absl::StrCat("line ", i + 1, ": the core no longer decides\n  ", lines[i]));
    }
  }
  return replayed;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_RECORDING_H_
