#include "worker/session/session_core.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/exit_code.h"

namespace lockstep::worker {

SessionCore::SessionCore(SessionConfig config)
    : config_(std::move(config)),
      link_(config_.incarnation.low, config_.greeting_limit),
      job_(config_.job),
      membership_(config_.incarnation) {}

std::vector<Action> SessionCore::Step(absl::Time now, const Event& event) {
  actions_.clear();
  if (phase_ == Phase::kExited) return {};
  if (now_ == absl::InfinitePast()) {
    link_.Begin(now);
    parked_since_ = now_ = now;
  }
  if (now - now_ > kTickGap) link_.Paused(now - now_);
  now_ = now;
  const bool had_state = has_state_;
  const Lineage lineage_before = lineage_;
  const Position position_before = position_;
  std::visit([this](const auto& e) { On(e); }, event);
  if (phase_ == Phase::kExited) return std::move(actions_);
  if (ReportPending() && now_ >= reports_.next()) FlushReport();
  UpdatePhase();
  std::string broken = BrokenInvariant();
  if (broken.empty() && had_state && has_state_ && lineage_ == lineage_before && position_ < position_before) {
    broken = absl::StrCat("it went back from ", position_before.ToString(), " to ", position_.ToString());
  }
  if (broken.empty()) return std::move(actions_);
  // Nothing of what was decided is carried out; the chief hears of it as of any other error.
  actions_.clear();
  On(InternalError{kExitBug, absl::StrCat("a defect of the worker: its view of itself contradicts itself: ", broken,
                                          ". The other workers go on; started again, it joins them")});
  return std::move(actions_);
}

std::string SessionCore::BrokenInvariant() const {
  for (const std::string& broken : {link_.BrokenInvariant(), membership_.BrokenInvariant()}) {
    if (!broken.empty()) return broken;
  }
  const auto phase_is = [this](std::initializer_list<Phase> phases) {
    return std::find(phases.begin(), phases.end(), phase_) != phases.end();
  };
  if (membership_.none() != phase_is({Phase::kIdle, Phase::kPreparing, Phase::kReturning})) {
    return absl::StrCat("its phase ", static_cast<int>(phase_), " does not fit generation ",
                        membership_.generation().ToString());
  }
  if ((phase_ == Phase::kRunning) != (work_ != Work::kNone) && phase_ != Phase::kStopping) {
    return absl::StrCat("work ", static_cast<int>(work_), " is under way in phase ", static_cast<int>(phase_));
  }
  if ((phase_ == Phase::kHolding) != (hold_ != Hold::kNone)) {
    return absl::StrCat("it waits for ", static_cast<int>(hold_), " in phase ", static_cast<int>(phase_));
  }
  if ((stop_limit_ != absl::InfiniteFuture()) != phase_is({Phase::kStopping, Phase::kReturning})) {
    return absl::StrCat("a limit for stopping stands in phase ", static_cast<int>(phase_));
  }
  if (!verdicts_.empty() && phase_ != Phase::kStopping) return "a verdict waits, and nothing is being stopped";
  if (link_.hello_waits() && !phase_is({Phase::kStopping, Phase::kReturning})) return "a Hello waits for nothing";
  if (phase_is({Phase::kRunning, Phase::kHolding}) && !has_state_) return "it steps without a state";
  return "";
}

void SessionCore::Tell(WorkerMessage message, std::string reason) {
  // Between Hello and Welcome the term is not known yet: a message of the old one would be answered with Fenced, and
  // the Hello after that undoes what this one achieved. Only what cannot wait goes out.
  const bool cannot_wait = std::holds_alternative<Left>(message) || std::holds_alternative<ErrorReport>(message) ||
                           std::holds_alternative<CommandRejected>(message);
  if (!link_.welcomed() && !(link_.Is(Link::kGreeting) && cannot_wait)) return;
  Emit(Send{WorkerFence{job_, link_.term(), config_.incarnation}, std::move(message), std::move(reason)});
}

void SessionCore::UpdatePhase() {
  Heartbeat::Phase phase = Heartbeat::Phase::kIdle;
  switch (phase_) {
    case Phase::kPreparing:
    case Phase::kReturning:
      phase = Heartbeat::Phase::kPreparing;
      break;
    case Phase::kForming:
    case Phase::kSyncing:
      phase = Heartbeat::Phase::kForming;
      break;
    case Phase::kRunning:
    case Phase::kStopping:
      phase = Heartbeat::Phase::kComputing;
      break;
    case Phase::kHolding:
      phase = Heartbeat::Phase::kWaitingForChief;
      break;
    case Phase::kIdle:
    case Phase::kExited:
      break;
  }
  SetPhase now_is{WorkerFence{job_, link_.term(), config_.incarnation}, phase, position_};
  if (phase_told_ == now_is) return;
  phase_told_ = now_is;
  Emit(std::move(now_is));
}

void SessionCore::On(const Tick&) {
  if (grace_.IsOver(now_)) return ExitAsLeaver("the grace has ended");
  if (now_ >= stop_limit_) {
    const bool returns = phase_ == Phase::kReturning;
    return ExitWith(kExitPreempted,
                    returns ? absl::StrCat("the copy of ", returning_.state.position.ToString(),
                                           " was not taken up in ", absl::FormatDuration(kReturnLimit))
                            : "computing did not stop after its collectives were aborted",
                    /*stuck=*/true);
  }
  if (link_.GreetingIsOver(now_)) GiveUpLink("the chief did not answer Hello");
  if (link_.IsSilent(now_, ChiefSilence())) {
    GiveUpLink(absl::StrCat("it has answered no heartbeat for ", absl::FormatDuration(ChiefSilence())));
  }
  if (const auto limit = ChiefLimit(); limit.has_value() && now_ >= *limit) {
    const char* const why =
        phase_ == Phase::kRunning ? " after the last one was told to go" : " while there was nothing to do without one";
    return ExitWith(kExitChiefUnreachable,
                    absl::StrCat("no chief for ", absl::FormatDuration(policy_.chief_timeout), why));
  }
  if (link_.ConnectIsDue(now_)) {
    link_.Try(now_);
    Emit(Connect{"no session with a chief"});
  }
  if (const auto time = ReleaseTime(); time.has_value() && now_ >= *time) {
    released_ = true;
    Emit(ReleaseMemory{absl::StrCat("nothing to compute for ", absl::FormatDuration(config_.release_after))});
  }
}

std::optional<absl::Time> SessionCore::ReleaseTime() const {
  if (phase_ != Phase::kIdle || !ready_.has_value() || released_) return std::nullopt;
  return idle_since_ + config_.release_after;
}

std::optional<absl::Time> SessionCore::ChiefLimit() const {
  if (link_.welcomed()) return std::nullopt;
  const bool needs_chief = phase_ == Phase::kIdle || phase_ == Phase::kPreparing || phase_ == Phase::kHolding;
  if (needs_chief) return std::max(parked_since_, link_.down_since()) + policy_.chief_timeout;
  // Nobody may start another one: what it left is saved up to its end, and the rest is not worth a device for ever.
  if (link_.handed_over() && phase_ == Phase::kRunning) return link_.down_since() + policy_.chief_timeout;
  return std::nullopt;
}

absl::Time SessionCore::NextDeadline() const {
  if (phase_ == Phase::kExited) return absl::InfiniteFuture();
  absl::Time next = std::min({stop_limit_, grace_.end(), link_.NextDeadline(ChiefSilence())});
  if (ReportPending()) next = std::min(next, reports_.next());
  if (const auto limit = ChiefLimit(); limit.has_value()) next = std::min(next, *limit);
  if (const auto time = ReleaseTime(); time.has_value()) next = std::min(next, *time);
  return next;
}

void SessionCore::On(const PlanFinished& event) {
  if (phase_ == Phase::kPreparing) phase_ = Phase::kIdle;
  Tell(event.result);
}

void SessionCore::On(const Prepared& event) {
  if (phase_ == Phase::kPreparing) phase_ = Phase::kIdle;
  ready_ = event.result;
  kept_.Allow(event.may_keep);
  idle_since_ = now_;
  Tell(event.result);
}

void SessionCore::On(const PreparationFailed& event) {
  if (phase_ == Phase::kPreparing) phase_ = Phase::kIdle;
  ready_.reset();
  Tell(event.result);
}

void SessionCore::ExitWith(int32_t code, std::string reason, bool stuck) {
  Tell(Left{code, reason});
  Emit(Exit{code, std::move(reason), stuck});
  phase_ = Phase::kExited;
}

bool SessionCore::ReportPending() const {
  if (!link_.welcomed() || !has_state_ || membership_.none()) return false;
  return reports_.IsPending(position_);
}

void SessionCore::FlushReport() {
  if (!ReportPending()) return;
  Tell(reports_.Take(now_, policy_.report_interval, membership_.generation(), lineage_, position_));
}

void SessionCore::On(const TextWritten& event) {
  if (event.generation == membership_.generation()) Tell(TextSample{lineage_, event.step, event.text});
}

void SessionCore::On(const Observed& event) {
  if (event.generation == membership_.generation()) Tell(Observation{lineage_, event.step, event.hook, event.content});
}

void SessionCore::On(const PeersTestedHere& event) { Tell(event.result); }

void SessionCore::On(const InternalError& event) {
  // A worker that exits to be restarted counts as lost, not as failed.
  if (event.exit_code != kExitPreempted) Tell(ErrorReport{event.exit_code, position_.step, event.message});
  ExitWith(event.exit_code, event.message);
}

void SessionCore::On(const TermSignal& event) {
  BeginToLeave(event.grace > absl::ZeroDuration() ? event.grace : policy_.grace_period, "asked to end");
}

void SessionCore::On(const DataLost& event) {
  if (!data_lost_.has_value()) data_lost_ = event.message;
  BeginToLeave(policy_.grace_period, event.message);
}

void SessionCore::BeginToLeave(absl::Duration grace, const std::string& why) {
  if (!grace_.Begin(now_, grace)) return;
  Emit(Announce{false, why});
  if (policy_.samples_text) Emit(CancelSample{"the worker is to end"});
  if (membership_.none() && !has_state_) return ExitAsLeaver("preempted before it held any state");
  if (link_.welcomed()) TellLeaveIntent();
}

void SessionCore::ExitAsLeaver(const std::string& reason) {
  data_lost_.has_value() ? ExitWith(kExitBadData, *data_lost_) : ExitWith(kExitPreempted, reason);
}

}  // namespace lockstep::worker
