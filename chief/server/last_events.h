// The last events of a core and the actions that it decided on each, to investigate defects. They are kept as structs
// and become text only on request. Events without actions (most heartbeats) are left out.
//
// Invariant: keeps at most kMost events.
// Threading: thread-compatible; owned by ChiefLoop.
#ifndef LOCKSTEP_CHIEF_SERVER_LAST_EVENTS_H_
#define LOCKSTEP_CHIEF_SERVER_LAST_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "chief/core/events.h"
#include "common/protocol/recording.h"

namespace lockstep::chief {

class LastEvents {
 public:
  static constexpr size_t kMost = 256;

  void Keep(absl::Time now, const Event& event, const std::vector<Action>& actions) {
    ++seen_;
    // What workers looked at for hooks is large, and decides nothing.
    const auto* const message = std::get_if<FromWorker>(&event);
    if (actions.empty() || (message != nullptr && std::holds_alternative<Observation>(message->message))) return;
    if (kept_.size() == kMost) kept_.pop_front();
    kept_.push_back({now, event, actions});
  }

  // The events in the form of a record (common/protocol/recording.h), oldest first. It cannot be replayed, as earlier
  // events are missing.
  std::string Text() const {
    std::string text = absl::StrCat("# the last ", kept_.size(), " of ", seen_, " events, with what was decided\n");
    for (const Kept& kept : kept_) text += RecordStep(kept.when, kept.event, kept.actions);
    return text;
  }

 private:
  struct Kept {
    absl::Time when;
    Event event;
    std::vector<Action> actions;
  };

  std::deque<Kept> kept_;
  uint64_t seen_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_LAST_EVENTS_H_
