#include "chief/core/coordinator.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/core/invariants.h"
#include "common/status/check.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {

namespace {

// Where every generation has one of its own, the checkpoint's is the newest that is known, unless a repair left it.
Lineage NewestLineage(const CoordinatorConfig& config) {
  const Lineage& saved = config.recovered.checkpoint.lineage;
  const bool continues = config.policy.lineage_per_generation && JobLineage(saved) == config.policy.lineage;
  return continues ? saved : config.policy.lineage;
}

}  // namespace

Coordinator::Coordinator(const CoordinatorConfig& config)
    : policy_(config.policy),
      term_(config.recovered.term),
      job_lineage_(config.policy.lineage),
      history_(NewestLineage(config)),
      drains_(config.recovered.drains),
      out_(config.recovered.term),
      saves_(config.recovered),
      progress_(history_.lineage(), config.recovered.checkpoint.step, config.policy.training.eval_slices,
                config.recovered.ledger.step),
      budget_(config.policy.max_failures),
      plan_(config.recovered.plan_hash, config.recovered.data_digest),
      no_progress_(config.policy.no_progress_limit),
      hosts_(config.policy.exclude_host_after, config.recovered.hosts, config.recovered.trained_for),
      trained_for_(config.recovered.trained_for),
      repair_(config.recovered.repair) {
  budget_.SavePublished(config.recovered.checkpoint.step);
}

std::vector<Action> Coordinator::Step(absl::Time now, const Event& event) {
  if (life_.Is(Phase::kEnded)) return {};
  NoteTime(now);
  left_out_.clear();
  const SnapshotId published_before = saves_.published();
  const Phase phase_before = life_.phase();
  const Lineage job_before = job_lineage_;
  judging_ = std::holds_alternative<Tick>(event);
  if (judging_) {
    last_tick_ = now;
    in_burst_ = false;
  }
  only_told_ = false;
  std::visit([this](const auto& alternative) { On(alternative); }, event);
  if (!life_.Is(Phase::kEnded) && !only_told_ && !in_burst_) {
    advanced_ = now_;
    Advance();
  }
  std::vector<Action> actions = out_.Take();
  if (life_.Is(Phase::kEnded) || only_told_) return actions;
  const bool in_full = judging_ || !life_.Is(phase_before) || !left_out_.empty() || roster_.size() <= kFewWorkers;
  const std::string broken = BrokenInvariant({in_full, life_.Is(Phase::kRunning), life_.current().id,
                                              life_.current().members, roster_, history_, job_before == job_lineage_,
                                              drains_, published_before, saves_.published(), actions, left_out_});
  if (broken.empty()) return actions;
  // Nothing of what was decided is carried out.
  life_.End();
  return {Exit{kExitBug, absl::StrCat("the chief is wrong about the job, which is a defect of it: ", broken,
                                      ". Nothing was published since step ", published_before.step,
                                      "; start the job again, and it goes on from there")}};
}

void Coordinator::NoteTime(absl::Time now) {
  if (now_ == absl::InfinitePast()) {
    now_ = last_tick_ = said_ = last_save_ = now;
    life_.Begin(now, term_, policy_);
    return;
  }
  LS_CHECK(now >= now_, "time never goes backwards");
  const absl::Duration gap = now - now_;
  now_ = now;
  if (gap <= kTickGap) {
    if (life_.Is(Phase::kRunning)) trained_for_ += gap;
    return;
  }
  // This process did not run, or its machine slept: what looks late may lie in the queue (rule 16).
  out_.Say(Level::kWarning,
           absl::StrCat("nothing happened here for ", absl::FormatDuration(gap), "; deadlines are moved by as much"));
  life_.WasAway(gap, now, policy_);
  last_save_ += gap;
  last_call_until_ += gap;
  last_came_ += gap;
  joins_.ShiftDeadlines(gap);
  for (auto& [session, claim] : name_claims_) claim.since += gap;
  gone_.ShiftDeadlines(gap);
  if (parked_since_.has_value()) *parked_since_ += gap;
  if (done_since_.has_value()) *done_since_ += gap;
  repair_.ShiftDeadlines(gap);
  saves_.ShiftDeadlines(gap);
  plan_.ShiftDeadlines(gap);
  for (Worker* worker : roster_.InOrder()) {
    worker->heard += gap;
    worker->progressed += gap;
  }
}

void Coordinator::AdvancePhase() {
  switch (life_.phase()) {
    case Phase::kAdopting:
      return AdvanceAdopting();
    case Phase::kWaiting:
      return AdvanceWaiting();
    case Phase::kForming:
      return AdvanceForming();
    case Phase::kRunning:
      return RequestBoundaries();
    case Phase::kBreaking:
      return AdvanceBreaking();
    case Phase::kFinishing:
      return AdvanceFinishing();
    case Phase::kDone:
      return AdvanceDone();
    case Phase::kEnded:
      return;
  }
}

void Coordinator::Advance() {
  ServeNames();
  if (life_.Is(Phase::kEnded)) return;
  for (int round = 0; round < 8; ++round) {
    const Phase before = life_.phase();
    if (repair_.pending() && !life_.Is(Phase::kBreaking) && !life_.Is(Phase::kDone)) {
      life_.Is(Phase::kWaiting) ? AdvanceRepair() : BreakToRepair();
    } else {
      AdvancePhase();
    }
    if (life_.Is(Phase::kEnded)) return;
    // What waits for a save goes on as soon as that is given up.
    const auto awaited = [this] {
      return std::tuple(saves_.Busy(), saves_.Saving(saves_.published().step + 1), saves_.Saving(life_.final_step()));
    };
    const auto awaited_before = awaited();
    AdvanceSaves();
    if (life_.Is(Phase::kEnded) || (life_.Is(before) && awaited() == awaited_before)) break;
  }
  if (life_.Is(Phase::kEnded) || life_.Is(Phase::kDone)) return;
  PrepareOrPlan();
  TestConnectionsDue();
  ServeLeavers();
}

void Coordinator::On(const Tick&) {
  CheckLifeSigns();
  EndLateDrains();
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
  only_told_ = true;  // heartbeats are most of what comes in: what they change is judged by the next Tick
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

void Coordinator::On(const BurstBegins&) { in_burst_ = true; }
void Coordinator::On(const BurstEnds&) { in_burst_ = false; }

void Coordinator::On(const ShardStored& event) { saves_.Stored(event); }
void Coordinator::On(const ShardBroken& event) { saves_.Broken(event, out_); }

void Coordinator::On(const ManifestStored& event) { saves_.ManifestDone(event, SaveContext(), out_, roster_); }

void Coordinator::On(const Published& event) {
  if (!saves_.PublishDone(event.snapshot, now_, out_, roster_)) return;
  last_save_ = now_;
  budget_.SavePublished(event.snapshot.step);
  ForgiveHosts(event.snapshot.step);
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
  life_.End();
  out_.Add(Exit{kExitFenced,
                absl::StrCat("term ", event.newer, " was claimed by another chief; this one had term ", term_)});
}

void Coordinator::On(const StopRequested& event) {
  if (ending_.has_value() || result_.has_value()) return;
  ending_ = Ending{event.exit_code, absl::StrCat("stop requested by ", event.by)};
  out_.Say(Level::kInfo, absl::StrCat(ending_->reason, ": saving first"));
}

absl::Time Coordinator::NextDeadline() const {
  absl::Time next = last_tick_ + kTickEvery;
  next = std::min(next, life_.deadline());
  const auto at = [&](absl::Time when) {
    if (when > advanced_) next = std::min(next, when);
  };
  if (life_.Is(Phase::kWaiting)) {
    at(life_.backoff().until());
    at(last_call_until_);
    if (policy_.expected_workers == 0) at(last_came_ + kQuiet);
  }
  at(pairs_.NextDeadline(advanced_));
  at(joins_.NextDeadline(advanced_));
  next = std::min(next, repair_.NextDeadline(advanced_));
  next = std::min(next, saves_.NextDeadline(advanced_));
  return std::max(next, now_);
}

}  // namespace lockstep::chief
