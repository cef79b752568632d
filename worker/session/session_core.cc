#include "worker/session/session_core.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/exit_code.h"

namespace lockstep::worker {
namespace {

// What is to be reported waits here while no chief listens; the oldest go first.
constexpr size_t kMaxWaiting = 1024;
static_assert(kMaxWaiting < kMaxRepeated, "a report carries all that waits");

template <typename T>
void Trim(std::vector<T>& list) {
  if (list.size() > kMaxWaiting) list.erase(list.begin(), list.end() - static_cast<std::ptrdiff_t>(kMaxWaiting));
}

}  // namespace

SessionCore::SessionCore(SessionConfig config) : config_(std::move(config)), job_(config_.job) {}

std::vector<Action> SessionCore::Step(absl::Time now, const Event& event) {
  actions_.clear();
  if (phase_ == Phase::kExited) return {};
  if (now_ == absl::InfinitePast()) link_down_since_ = parked_since_ = now_ = now;
  if (now - now_ > kTickGap) heard_ += now - now_;
  now_ = now;
  std::visit(
      [this](const auto& e) {
        using T = std::decay_t<decltype(e)>;
        if constexpr (std::is_same_v<T, Tick>) OnTick();
        if constexpr (std::is_same_v<T, ChiefConnected>) OnConnected();
        if constexpr (std::is_same_v<T, ChiefDisconnected>) OnDisconnected(e);
        if constexpr (std::is_same_v<T, BeatAnswered>) OnBeatAnswered(e);
        if constexpr (std::is_same_v<T, CommandReceived>) OnCommand(e);
        if constexpr (std::is_same_v<T, PlanFinished>) OnPlanFinished(e);
        if constexpr (std::is_same_v<T, Prepared>) OnPrepared(e);
        if constexpr (std::is_same_v<T, PreparationFailed>) OnPreparationFailed(e);
        if constexpr (std::is_same_v<T, PeersTestedHere>) Tell(e.result);
        if constexpr (std::is_same_v<T, CommunicatorFormed>) OnCommunicatorFormed(e);
        if constexpr (std::is_same_v<T, StateSynced>) OnStateSynced(e);
        if constexpr (std::is_same_v<T, CollectiveFailed>) OnCollectiveFailed(e);
        if constexpr (std::is_same_v<T, StepFinished>) OnStepFinished(e);
        if constexpr (std::is_same_v<T, SliceFinished>) OnSliceFinished(e);
        if constexpr (std::is_same_v<T, TextWritten>) {
          if (e.generation == generation_) Tell(TextSample{lineage_, e.step, e.text});
        }
        if constexpr (std::is_same_v<T, Observed>) {
          if (e.generation == generation_) Tell(Observation{lineage_, e.step, e.hook, e.content});
        }
        if constexpr (std::is_same_v<T, ComputingStopped>) OnComputingStopped(e);
        if constexpr (std::is_same_v<T, DigestComputed>) OnDigestComputed(e);
        if constexpr (std::is_same_v<T, KeptTakenUp>) OnKeptTakenUp(e);
        if constexpr (std::is_same_v<T, SnapshotDone>) OnSnapshotDone(e);
        if constexpr (std::is_same_v<T, ShareUploaded>) {
          // The chief hears of it from the upload itself.
        }
        if constexpr (std::is_same_v<T, ShareUploadFailed>) OnShareFailed(e);
        if constexpr (std::is_same_v<T, TermSignal>) OnTermSignal(e);
        if constexpr (std::is_same_v<T, InternalError>) {
          // Who leaves to come back is lost, and at fault no more than a process that was killed.
          if (e.exit_code != kExitPreempted) Tell(ErrorReport{e.exit_code, position_.step, e.message});
          ExitWith(e.exit_code, e.message);
        }
      },
      event);
  if (phase_ != Phase::kExited) {
    Trim(records_);
    Trim(digests_);
    if (ReportPending() && now_ >= next_report_) FlushReport();
    UpdatePhase();
  }
  return std::move(actions_);
}

void SessionCore::Tell(WorkerMessage message, std::string reason) {
  // Between Hello and Welcome the term is not known yet: a message of the old one would be answered with Fenced, and
  // the Hello after that undoes what this one achieved. Only what cannot wait goes out.
  const bool cannot_wait = std::holds_alternative<Left>(message) || std::holds_alternative<ErrorReport>(message) ||
                           std::holds_alternative<CommandRejected>(message);
  if (link_ != Link::kWelcomed && !(link_ == Link::kGreeting && cannot_wait)) return;
  Emit(Send{WorkerFence{job_, term_, config_.incarnation}, std::move(message), std::move(reason)});
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
  SetPhase now_is{WorkerFence{job_, term_, config_.incarnation}, phase, position_};
  if (phase_told_ == now_is) return;
  phase_told_ = now_is;
  Emit(std::move(now_is));
}

void SessionCore::OnTick() {
  LeaveIfGraceEnds();
  if (phase_ == Phase::kExited) return;
  if (now_ >= stop_limit_) {
    const bool returns = phase_ == Phase::kReturning;
    return ExitWith(kExitPreempted,
                    returns ? absl::StrCat("the copy of ", returning_.state.position.ToString(),
                                           " was not taken up in ", absl::FormatDuration(kReturnLimit))
                            : "computing did not stop after its collectives were aborted",
                    /*stuck=*/true);
  }
  if (link_ == Link::kGreeting && now_ >= greeting_limit_) GiveUpLink("the chief did not answer Hello");
  if (link_ == Link::kWelcomed && now_ >= heard_ + ChiefSilence()) {
    GiveUpLink(absl::StrCat("it has answered no heartbeat for ", absl::FormatDuration(ChiefSilence())));
  }
  if (const auto limit = ChiefLimit(); limit.has_value() && now_ >= *limit) {
    const char* const why =
        phase_ == Phase::kRunning ? " after the last one was told to go" : " while there was nothing to do without one";
    return ExitWith(kExitChiefUnreachable,
                    absl::StrCat("no chief for ", absl::FormatDuration(policy_.chief_timeout), why));
  }
  if (link_ == Link::kDown && now_ >= next_connect_) {
    link_ = Link::kConnecting;
    last_attempt_ = now_;
    ++attempts_;
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
  if (link_ == Link::kWelcomed) return std::nullopt;
  const bool needs_chief = phase_ == Phase::kIdle || phase_ == Phase::kPreparing || phase_ == Phase::kHolding;
  if (needs_chief) return std::max(parked_since_, link_down_since_) + policy_.chief_timeout;
  // Nobody may start another one: what it left is saved up to its end, and the rest is not worth a device for ever.
  if (handed_over_ && phase_ == Phase::kRunning) return link_down_since_ + policy_.chief_timeout;
  return std::nullopt;
}

absl::Time SessionCore::NextDeadline() const {
  if (phase_ == Phase::kExited) return absl::InfiniteFuture();
  absl::Time next = std::min({stop_limit_, grace_end_});
  if (link_ == Link::kDown) next = std::min(next, next_connect_);
  if (link_ == Link::kGreeting) next = std::min(next, greeting_limit_);
  if (link_ == Link::kWelcomed) next = std::min(next, heard_ + ChiefSilence());
  if (ReportPending()) next = std::min(next, next_report_);
  if (const auto limit = ChiefLimit(); limit.has_value()) next = std::min(next, *limit);
  if (const auto time = ReleaseTime(); time.has_value()) next = std::min(next, *time);
  return next;
}

void SessionCore::OnPlanFinished(const PlanFinished& event) {
  if (phase_ == Phase::kPreparing) phase_ = Phase::kIdle;
  Tell(event.result);
}

void SessionCore::OnPrepared(const Prepared& event) {
  if (phase_ == Phase::kPreparing) phase_ = Phase::kIdle;
  ready_ = event.result;
  may_keep_ = event.may_keep;
  idle_since_ = now_;
  Tell(event.result);
}

void SessionCore::OnPreparationFailed(const PreparationFailed& event) {
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
  if (link_ != Link::kWelcomed || !has_state_ || generation_.IsNone()) return false;
  return !records_.empty() || !digests_.empty() || reported_ != position_;
}

void SessionCore::FlushReport() {
  if (!ReportPending()) return;
  Report report{generation_, lineage_, position_, std::move(records_), std::move(digests_), {}};
  records_.clear();
  digests_.clear();
  reported_ = position_;
  next_report_ = now_ + policy_.report_interval;
  Tell(std::move(report));
}

}  // namespace lockstep::worker
