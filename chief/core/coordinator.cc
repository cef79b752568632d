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

void Coordinator::CurrentGeneration::Add(const Member& member) {
  members.push_back(member);
  ids.insert(member.incarnation);
}

std::vector<Incarnation> Coordinator::CurrentGeneration::Ids() const {
  std::vector<Incarnation> ids;
  for (const Member& member : members) ids.push_back(member.incarnation);
  return ids;
}

std::vector<Action> Coordinator::Step(absl::Time now, const Event& event) {
  if (phase_ == Phase::kEnded) return {};
  NoteTime(now);
  left_out_.clear();
  const SnapshotId published_before = saves_.published();
  const Phase phase_before = phase_;
  const Lineage job_before = job_lineage_;
  judging_ = std::holds_alternative<Tick>(event);
  if (judging_) {
    last_tick_ = now;
    in_burst_ = false;
  }
  only_told_ = false;
  std::visit([this](const auto& alternative) { On(alternative); }, event);
  if (phase_ != Phase::kEnded && !only_told_ && !in_burst_) {
    advanced_ = now_;
    Advance();
  }
  std::vector<Action> actions = out_.Take();
  if (phase_ == Phase::kEnded || only_told_) return actions;
  const bool in_full = judging_ || phase_ != phase_before || !left_out_.empty() || roster_.size() <= kFewWorkers;
  const std::string broken = BrokenInvariant({in_full, phase_ == Phase::kRunning, current_.id, current_.members,
                                              roster_, history_, job_before == job_lineage_, drains_, published_before,
                                              saves_.published(), actions, left_out_});
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

void Coordinator::Advance() {
  ServeNames();
  if (phase_ == Phase::kEnded) return;
  for (int round = 0; round < 8; ++round) {
    const Phase before = phase_;
    switch (phase_) {
      case Phase::kAdopting:
        repair_.pending() ? BreakToRepair() : AdvanceAdopting();
        break;
      case Phase::kWaiting:
        repair_.pending() ? AdvanceRepair() : AdvanceWaiting();
        break;
      case Phase::kForming:
        repair_.pending() ? BreakToRepair() : AdvanceForming();
        break;
      case Phase::kRunning:
        repair_.pending() ? BreakToRepair() : RequestBoundaries();
        break;
      case Phase::kBreaking:
        AdvanceBreaking();
        break;
      case Phase::kFinishing:
        repair_.pending() ? BreakToRepair() : AdvanceFinishing();
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
  return absl::StrCat(absl::StrJoin(parts, "; "), ApartText(), DrainText());
}

std::string Coordinator::DelayText() {
  if (phase_ != Phase::kWaiting) return "";
  const auto in_seconds = [](absl::Duration left) { return absl::FormatDuration(absl::Ceil(left, absl::Seconds(1))); };
  if (backoff_.Pauses(now_)) {
    return absl::StrCat("the next generation, in ", in_seconds(backoff_.until() - now_), ": ", backoff_.fruitless(),
                        " in a row broke without a step, the last one so: ", backoff_.cause());
  }
  std::set<Incarnation> earlier;
  for (const Worker* worker : roster_.InOrder()) {
    if (!worker->IsReady() || !worker->AtRest() || worker->leaving) continue;
    if (!pairs_.MayForm(worker->id(), now_)) {
      return absl::StrCat(worker->name(), ", which pauses because it could not do its part: ", backoff_.cause());
    }
    const Incarnation doubted = pairs_.DoubtedAmong(worker->id(), earlier, now_);
    earlier.insert(worker->id());
    if (doubted.IsNone()) continue;
    const std::string whom = doubted == worker->id() ? "others" : roster_.Find(doubted)->name();
    return absl::StrCat("a test whether ", worker->name(), " reaches ", whom,
                        "; the last generation broke so: ", backoff_.cause());
  }
  return "";
}

std::string Coordinator::ApartText() {
  constexpr size_t kMostNamed = 4;
  std::vector<std::string> apart;
  for (const auto& [one, other] : pairs_.ApartPairs(kMostNamed)) {
    const Worker* earlier = roster_.Find(one);
    const Worker* later = roster_.Find(other);
    if (earlier == nullptr || later == nullptr) continue;
    if (earlier->order > later->order) std::swap(earlier, later);
    apart.push_back(absl::StrCat(later->name(), " and ", earlier->name()));
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
  at(joins_.NextDeadline(advanced_));
  next = std::min(next, repair_.NextDeadline(advanced_));
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
  view.drained = drains_.Targets();
  if (phase_ != Phase::kRunning && phase_ != Phase::kDone) view.waiting_for = WaitingText();
  if (saves_.Insists() && !saves_.TroubleText(now_).empty()) view.waiting_for = saves_.TroubleText(now_);
  if (const std::string trouble = plan_.TroubleText(now_); !trouble.empty()) view.waiting_for = trouble;
  if (repair_.pending()) view.waiting_for = repair_.Text(now_);
  std::map<Incarnation, int32_t> ranks;
  for (const Member& member : current_.members) ranks.emplace(member.incarnation, ranks.size());
  for (const Worker* worker : roster_.InOrder()) {
    CoordinatorView::WorkerLine line;
    line.name = worker->name();
    line.host = worker->host;
    line.device = worker->device;
    line.state = worker->IsReady() ? "spare" : "joining";
    line.step = worker->step;
    if (const auto rank = ranks.find(worker->id()); rank != ranks.end() && !worker->AtRest()) {
      line.state = "member";
      line.rank = rank->second;
    }
    if (line.rank < 0 && worker->IsReady() && phase_ == Phase::kWaiting) line.state = "ready";
    if (worker->leaving) line.state = "leaving";
    view.workers.push_back(std::move(line));
  }
  ViewHosts(view);
  return view;
}

}  // namespace lockstep::chief
