#include <algorithm>

#include "common/status/exit_code.h"
#include "worker/session/session_core.h"

namespace lockstep::worker {

void SessionCore::OnTermSignal(const TermSignal& event) {
  // Leave the last moments to the shell: a process that is killed says no goodbye.
  const absl::Duration grace = event.grace > absl::ZeroDuration() ? event.grace : policy_.grace_period;
  grace_end_ = std::min(grace_end_, now_ + grace - std::min(absl::Milliseconds(500), grace / 10));
  if (leaving_) return;
  leaving_ = true;
  Emit(Announce{false, "asked to end"});
  if (policy_.samples_text) Emit(CancelSample{"the worker was asked to end"});
  if (generation_.IsNone() && !has_state_) return ExitWith(kExitPreempted, "preempted before it held any state");
  if (link_ == Link::kWelcomed) TellLeaveIntent();
}

void SessionCore::TellLeaveIntent() { Tell(LeaveIntent{std::max(grace_end_ - now_, absl::ZeroDuration())}); }

bool SessionCore::AsksToLeave() const {
  if (!leaving_) return false;
  return link_ == Link::kWelcomed || now_ >= grace_end_ - policy_.late_leave;
}

void SessionCore::LeaveIfGraceEnds() {
  if (leaving_ && now_ >= grace_end_) ExitWith(kExitPreempted, "the grace has ended");
}

}  // namespace lockstep::worker
