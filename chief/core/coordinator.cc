#include "chief/core/coordinator.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/core/invariants.h"
#include "common/status/check.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

Coordinator::Coordinator(const CoordinatorConfig& config)
    : policy_(config.policy),
      term_(config.recovered.term),
      history_(config.policy.lineage_per_generation ? config.recovered.checkpoint.lineage : config.policy.lineage),
      out_(config.recovered.term),
      saves_(config.recovered),
      progress_(history_.lineage(), config.recovered.checkpoint.step, config.policy.training.eval_slices,
                config.recovered.ledger.step),
      budget_(config.policy.max_failures),
      plan_(config.recovered.plan_hash, config.recovered.data_digest),
      no_progress_(config.policy.no_progress_limit),
      trained_for_(config.recovered.trained_for) {
  budget_.SavePublished(config.recovered.checkpoint.step);
}

bool Coordinator::CurrentGeneration::Has(const Incarnation& incarnation) const {
  return std::any_of(members.begin(), members.end(),
                     [&](const Member& member) { return member.incarnation == incarnation; });
}

std::vector<Incarnation> Coordinator::CurrentGeneration::Ids() const {
  std::vector<Incarnation> ids;
  for (const Member& member : members) ids.push_back(member.incarnation);
  return ids;
}

std::vector<Action> Coordinator::Step(absl::Time now, const Event& event) {
  if (phase_ == Phase::kEnded) return {};
  NoteTime(now);
  const SnapshotId published_before = saves_.published();
  judging_ = std::holds_alternative<Tick>(event);
  if (judging_) last_tick_ = now;
  std::visit([this](const auto& alternative) { On(alternative); }, event);
  // Heartbeats are most of what comes in: what they change is judged by the next Tick.
  const bool only_told = std::holds_alternative<HeartbeatReceived>(event);
  if (phase_ != Phase::kEnded && !only_told) {
    advanced_ = now_;
    Advance();
  }
  std::vector<Action> actions = out_.Take();
  if (phase_ == Phase::kEnded || only_told) return actions;
  const std::string broken = BrokenInvariant({phase_ == Phase::kRunning, current_.id, current_.members, roster_,
                                              history_, published_before, saves_.published(), actions});
  if (broken.empty()) return actions;
  // Nothing of what was decided is carried out.
  phase_ = Phase::kEnded;
  return {Exit{kExitBug, absl::StrCat("the chief is wrong about the job, which is a defect of it: ", broken,
                                      ". Nothing was published since step ", published_before.step,
                                      "; start the job again, and it goes on from there")}};
}

void Coordinator::NoteTime(absl::Time now) {
  if (now_ == absl::InfinitePast()) {
    now_ = last_tick_ = phase_since_ = said_ = last_save_ = now;
    // A first chief has no predecessor whose generation could still run.
    deadline_ = term_ == 1 ? now : now + policy_.heartbeat_limit;
    return;
  }
  LS_CHECK(now >= now_, "time never goes backwards");
  const absl::Duration gap = now - now_;
  now_ = now;
  if (gap <= kTickGap) {
    if (phase_ == Phase::kRunning) trained_for_ += gap;
    return;
  }
  // This process did not run, or its machine slept: what looks late may lie in the queue (rule 16).
  out_.Say(Level::kWarning,
           absl::StrCat("nothing happened here for ", absl::FormatDuration(gap), "; deadlines are moved by as much"));
  if (gap >= std::min(policy_.heartbeat_limit, kNoticed)) away_until_ = now_ + policy_.heartbeat_limit;
  phase_since_ += gap;
  last_save_ += gap;
  deadline_ += gap;
  last_call_until_ += gap;
  last_came_ += gap;
  backoff_.ShiftDeadlines(gap);
  for (auto& [session, claim] : name_claims_) claim.since += gap;
  gone_.ShiftDeadlines(gap);
  if (parked_since_.has_value()) *parked_since_ += gap;
  if (done_since_.has_value()) *done_since_ += gap;
  if (mismatch_until_.has_value()) *mismatch_until_ += gap;
  saves_.ShiftDeadlines(gap);
  plan_.ShiftDeadlines(gap);
  for (Worker* worker : roster_.InOrder()) {
    worker->heard += gap;
    worker->progressed += gap;
  }
}

void Coordinator::Advance() {
  ServeNames();
  if (phase_ == Phase::kEnded) return;
  for (int round = 0; round < 8; ++round) {
    const Phase before = phase_;
    ConcludeMismatch();
    if (phase_ == Phase::kEnded) return;
    switch (phase_) {
      case Phase::kAdopting:
        AdvanceAdopting();
        break;
      case Phase::kWaiting:
        AdvanceWaiting();
        break;
      case Phase::kForming:
        AdvanceForming();
        break;
      case Phase::kRunning:
        RequestBoundaries();
        break;
      case Phase::kBreaking:
        AdvanceBreaking();
        break;
      case Phase::kFinishing:
        AdvanceFinishing();
        break;
      case Phase::kDone:
        AdvanceDone();
        break;
      case Phase::kEnded:
        return;
    }
    if (phase_ == Phase::kEnded) return;
    // What waits for a save goes on as soon as that is given up.
    const auto awaited = [this] {
      return std::tuple(saves_.Busy(), saves_.Saving(saves_.published().step + 1), saves_.Saving(final_step_));
    };
    const auto awaited_before = awaited();
    AdvanceSaves();
    if (phase_ == Phase::kEnded || (phase_ == before && awaited() == awaited_before)) break;
    if (phase_ != before) phase_since_ = now_;
  }
  if (phase_ == Phase::kEnded || phase_ == Phase::kDone) return;
  PrepareOrPlan();
  TestConnectionsDue();
  ServeLeavers();
}

void Coordinator::On(const Tick&) {
  CheckLifeSigns();
  SayWhatIsAwaited();
  saves_.SayWhatIsSlow(now_, out_, roster_);
}

void Coordinator::On(const FromWorker& event) {
  if (const auto* hello = std::get_if<Hello>(&event.message)) {
    OnHello(event.session, event.fence, *hello);
    return;
  }
  Worker* worker = roster_.BySession(event.session);
  // A mismatch is answered: silence is how systems hang (rule 10).
  std::string mismatch;
  if (worker == nullptr) {
    mismatch = "this session has said no Hello";
  } else if (event.fence.incarnation != worker->id()) {
    mismatch = absl::StrCat("this session belongs to ", worker->name(), ", another process");
  } else if (event.fence.term != term_) {
    mismatch = absl::StrCat("the message is for term ", event.fence.term, "; this is term ", term_);
  } else if (event.fence.job != policy_.job) {
    mismatch = absl::StrCat("the message is for job ", event.fence.job, "; this is job ", policy_.job);
  }
  if (!mismatch.empty()) {
    out_.Command(event.session, Generation(), Fenced{mismatch}, mismatch);
    return;
  }
  worker->heard = now_;
  std::visit([&](const auto& message) { OnMessage(*worker, message); }, event.message);
}

void Coordinator::On(const SessionClosed& event) {
  name_claims_.erase(event.session);
  Worker* worker = roster_.BySession(event.session);
  if (worker == nullptr) return;
  Lose(worker->id(), WorkerChange::kLost, absl::StrCat("its session ended: ", event.reason), /*close=*/false);
}

void Coordinator::On(const HeartbeatReceived& event) {
  Worker* worker = roster_.Find(event.fence.incarnation);
  if (worker == nullptr || event.fence.term != term_) return;
  worker->heard = now_;
  if (event.heartbeat.progress != worker->progress || event.heartbeat.phase != worker->phase) {
    NoteProgress(*worker);
  }
  worker->progress = event.heartbeat.progress;
  worker->phase = event.heartbeat.phase;
  worker->step = event.heartbeat.position.step;
  worker->doing = event.doing;
}

void Coordinator::On(const ShardStored& event) { saves_.Stored(event); }
void Coordinator::On(const ShardBroken& event) { saves_.Broken(event, out_); }

void Coordinator::On(const ManifestStored& event) {
  if (mismatch_until_.has_value()) return;  // replicas differ: nothing more is published
  saves_.ManifestDone(event, SaveContext(), out_, roster_);
}

void Coordinator::On(const Published& event) {
  if (!saves_.PublishDone(event.snapshot, now_, out_, roster_)) return;
  last_save_ = now_;
  budget_.SavePublished(event.snapshot.step);
  FinishIfPublished();
}

void Coordinator::On(const StorageFailed& event) {
  if (event.snapshot == SnapshotId()) {
    const std::string what = absl::StrCat("the kernel plan cannot be stored: ", event.message);
    if (!event.may_pass) return EndJob(kExitStorage, what);
    if (plan_.Refused(now_, what)) {
      out_.Say(Level::kError, absl::StrCat(plan_.TroubleText(now_), ". It is tried again until the storage takes it"));
    }
    return;
  }
  saves_.StorageRefused(event, SaveContext(), out_, roster_);
}

void Coordinator::On(const TermLost& event) {
  // Not EndJob: the workers belong to the newer chief and must not be told anything by this one.
  phase_ = Phase::kEnded;
  out_.Add(Exit{kExitFenced,
                absl::StrCat("term ", event.newer, " was claimed by another chief; this one had term ", term_)});
}

void Coordinator::On(const StopRequested& event) {
  if (ending_.has_value() || result_.has_value()) return;
  ending_ = Ending{event.exit_code, absl::StrCat("stop requested by ", event.by)};
  out_.Say(Level::kInfo, absl::StrCat(ending_->reason, ": saving first"));
}

std::string Coordinator::AwaitedText() {
  uint32_t ready = 0;
  std::vector<std::string> missing;
  for (Worker* worker : roster_.InOrder()) {
    if (worker->leaving) continue;
    if (worker->IsReady() && worker->AtRest()) {
      ++ready;
    } else {
      missing.push_back(absl::StrCat(worker->name(), worker->AtRest() ? " (preparing)" : " (stopping)"));
    }
  }
  const uint32_t wanted = std::max(policy_.min_workers, policy_.expected_workers);
  for (const auto& [name, why] : gone_.reasons()) {
    if (missing.size() + ready < wanted && roster_.ByName(name) == nullptr) {
      missing.push_back(absl::StrCat(name, " (", why, ")"));
    }
  }
  if (missing.size() + ready < wanted) {
    missing.push_back(absl::StrCat(wanted - ready - missing.size(), " that never connected"));
  }
  std::vector<std::string> parts;
  if (const std::string delay = DelayText(); !delay.empty()) parts.push_back(delay);
  if (ready < wanted || policy_.expected_workers != 0) {
    parts.push_back(absl::StrCat(ready, "/", wanted, " joined"));
  } else if (parts.empty()) {
    parts.push_back(
        absl::StrCat(ready, " joined; others that are starting are waited for (--expected-workers says how many)"));
  }
  if (!missing.empty()) parts.push_back(absl::StrCat("missing ", absl::StrJoin(missing, ", ")));
  return absl::StrCat(absl::StrJoin(parts, "; "), ApartText());
}

std::string Coordinator::DelayText() {
  if (phase_ != Phase::kWaiting) return "";
  const auto in_seconds = [](absl::Duration left) { return absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))); };
  if (backoff_.Pauses(now_)) {
    return absl::StrCat("the next generation, in ", in_seconds(backoff_.until() - now_), ": ", backoff_.fruitless(),
                        " in a row broke without a step, the last one so: ", backoff_.cause());
  }
  const std::vector<Worker*> workers = roster_.InOrder();
  for (size_t i = 0; i < workers.size(); ++i) {
    if (!workers[i]->IsReady() || !workers[i]->AtRest() || workers[i]->leaving) continue;
    if (!pairs_.MayForm(workers[i]->id(), now_)) {
      return absl::StrCat(workers[i]->name(), ", which pauses because it could not do its part: ", backoff_.cause());
    }
    for (size_t j = 0; j < i; ++j) {
      if (!pairs_.InDoubt(workers[i]->id(), workers[j]->id(), now_)) continue;
      return absl::StrCat("a test whether ", workers[i]->name(), " reaches ", workers[j]->name(),
                          "; the last generation broke so: ", backoff_.cause());
    }
  }
  return "";
}

std::string Coordinator::ApartText() {
  constexpr size_t kMostNamed = 4;
  std::vector<std::string> apart;
  const std::vector<Worker*> workers = roster_.InOrder();
  for (size_t i = 0; i < workers.size(); ++i) {
    for (size_t j = 0; j < i && apart.size() < kMostNamed; ++j) {
      if (!pairs_.Apart(workers[i]->id(), workers[j]->id())) continue;
      apart.push_back(absl::StrCat(workers[i]->name(), " and ", workers[j]->name()));
    }
  }
  return apart.empty() ? "" : absl::StrCat("; cannot connect to each other: ", absl::StrJoin(apart, ", "));
}

void Coordinator::SayWhatIsAwaited() {
  if (phase_ == Phase::kRunning || phase_ == Phase::kDone || phase_ == Phase::kEnded) return;
  if (now_ - std::max(said_, phase_since_) < kSayEvery) return;
  said_ = now_;
  if (phase_ == Phase::kFinishing && !saves_.TroubleText(now_).empty()) return;  // the storage's trouble is said
  out_.Say(Level::kInfo, absl::StrCat("waiting for ", WaitingText()));
}

std::string Coordinator::WaitingText() {
  switch (phase_) {
    case Phase::kFinishing:
      return "the last save to be published";
    case Phase::kForming:
      return absl::StrCat("generation ", current_.id.ToString(), ": ", current_.formed.size(), "/",
                          current_.members.size(), " members synchronised");
    default:
      return AwaitedText();
  }
}

absl::Time Coordinator::NextDeadline() const {
  absl::Time next = last_tick_ + kTickEvery;
  if (phase_ == Phase::kAdopting || phase_ == Phase::kBreaking) next = std::min(next, deadline_);
  const auto at = [&](absl::Time when) {
    if (when > advanced_) next = std::min(next, when);
  };
  if (phase_ == Phase::kWaiting) {
    at(backoff_.until());
    at(last_call_until_);
    if (policy_.expected_workers == 0) at(last_came_ + kQuiet);
  }
  at(pairs_.NextDeadline(advanced_));
  if (mismatch_until_.has_value()) next = std::min(next, *mismatch_until_);
  next = std::min(next, saves_.NextDeadline(advanced_));
  return std::max(next, now_);
}

CoordinatorView Coordinator::View() {
  CoordinatorView view;
  view.phase = phase_;
  view.generation = current_.id;
  view.lineage = history_.lineage();
  view.agreed_step = progress_.agreed();
  view.published_step = saves_.published().step;
  view.failures = budget_.spent();
  view.preemptions = gone_.preemptions();
  view.losses = gone_.losses();
  if (phase_ != Phase::kRunning && phase_ != Phase::kDone) view.waiting_for = WaitingText();
  if (saves_.Insists() && !saves_.TroubleText(now_).empty()) view.waiting_for = saves_.TroubleText(now_);
  if (const std::string trouble = plan_.TroubleText(now_); !trouble.empty()) view.waiting_for = trouble;
  for (Worker* worker : roster_.InOrder()) {
    CoordinatorView::WorkerLine line;
    line.name = worker->name();
    line.host = worker->host;
    line.device = worker->device;
    line.state = worker->IsReady() ? "spare" : "joining";
    line.step = worker->step;
    for (size_t rank = 0; rank < current_.members.size(); ++rank) {
      if (current_.members[rank].incarnation == worker->id() && !worker->AtRest()) {
        line.state = "member";
        line.rank = static_cast<int32_t>(rank);
      }
    }
    if (line.rank < 0 && worker->IsReady() && phase_ == Phase::kWaiting) line.state = "ready";
    if (worker->leaving) line.state = "leaving";
    view.workers.push_back(std::move(line));
  }
  return view;
}

}  // namespace lockstep::chief
