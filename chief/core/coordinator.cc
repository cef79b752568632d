#include "chief/core/coordinator.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "absl/strings/str_cat.h"
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

// SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV: the process was at fault itself.
bool IsCrashSignal(int32_t signal) { return signal == 4 || signal == 6 || signal == 7 || signal == 8 || signal == 11; }

}  // namespace

Coordinator::Coordinator(const CoordinatorConfig& config)
    : policy_(config.policy),
      term_(config.recovered.term),
      job_lineage_(config.policy.lineage),
      history_(NewestLineage(config)),
      out_(config.recovered.term),
      preparation_(config.recovered),
      progress_(history_.lineage(), config.recovered.checkpoint.step, config.policy.training.eval_slices,
                config.recovered.ledger.step),
      saves_(config.recovered,
             {.frozen_share = config.policy.frozen_share, .insists = config.policy.training.wait_for_saves}),
      clock_(config.recovered.trained_for),
      skipped_(config.policy.training.snapshot_every_steps, config.recovered.checkpoint.step),
      floor_(config.recovered.oldest_audited),
      repair_(config.recovered.repair),
      signs_(config.policy.no_progress_limit),
      hosts_(config.policy, config.recovered),
      drains_(config.recovered.drains) {}

std::vector<Action> Coordinator::Step(absl::Time now, const Event& event) {
  if (life_.Is(Phase::kEnded)) return {};
  NoteTime(now);
  hosts_.BeginEvent();
  const SnapshotId published_before = saves_.published();
  const Phase phase_before = life_.phase();
  const Lineage job_before = job_lineage_;
  is_tick_ = std::holds_alternative<Tick>(event);
  if (is_tick_) {
    last_tick_ = now;
    in_burst_ = false;
  }
  defers_to_tick_ = false;
  std::visit([this](const auto& alternative) { On(alternative); }, event);
  if (!life_.Is(Phase::kEnded) && !defers_to_tick_ && !in_burst_) {
    advanced_ = now_;
    Advance();
  }
  std::vector<Action> actions = out_.Take();
  if (life_.Is(Phase::kEnded) || defers_to_tick_) return actions;
  const bool changed = !life_.Is(phase_before) || !hosts_.left_out().empty();
  const bool in_full = is_tick_ || changed || roster_.size() <= kFewWorkers;
  const std::string broken = Broken(published_before, job_before == job_lineage_, in_full, actions);
  if (broken.empty()) return actions;
  // Nothing of what was decided is carried out.
  life_.End();
  return {Exit{kExitBug, absl::StrCat("a defect of the chief: its view of the job contradicts itself: ", broken,
                                      ". Nothing was published since step ", published_before.step,
                                      "; start the job again, and it goes on from there")}};
}

std::string Coordinator::Broken(const SnapshotId& published_before, bool same_job_lineage, bool in_full,
                                const std::vector<Action>& actions) {
  if (std::string broken = life_.BrokenInvariant(); !broken.empty()) return broken;
  if (std::string broken = in_full ? preparation_.BrokenInvariant(roster_) : ""; !broken.empty()) return broken;
  return BrokenInvariant({in_full, life_.Is(Phase::kRunning), life_.current().id, life_.current().members, roster_,
                          history_, same_job_lineage, drains_.drains(), published_before, saves_.published(), actions,
                          hosts_.left_out()});
}

// ---- time

void Coordinator::Trained(absl::Duration passed) {
  clock_.Stepped(passed);
  if (!policy_.save_automatic) return;
  const bool saving = saves_.Busy() || life_.HasRequested(RequestKind::kSnapshot);
  save_period_.Ran(policy_.training, {.passed = passed,
                                      .members = static_cast<int>(life_.current().members.size()),
                                      .agreed = progress_.agreed(),
                                      .saving = saving,
                                      .trouble = !saves_.TroubleText(now_).empty()});
}

void Coordinator::NoteTime(absl::Time now) {
  if (now_ == absl::InfinitePast()) {
    now_ = last_tick_ = said_ = now;
    clock_.Saved(now);
    if (term_ > 1) floor_.Begin(now);
    life_.Begin(now, term_, policy_);
    return;
  }
  LS_CHECK(now >= now_, "time never goes backwards");
  const absl::Duration gap = now - now_;
  now_ = now;
  if (gap <= kTickGap) {
    if (life_.Is(Phase::kRunning)) Trained(gap);
    return;
  }
  // This process did not run, or its machine slept: what looks late may lie in the queue (rule 16).
  out_.Say(Level::kWarning,
           absl::StrCat("nothing happened here for ", absl::FormatDuration(gap), "; deadlines are moved by as much"));
  life_.WasAway(gap, now, policy_);
  clock_.ShiftDeadlines(gap);
  gathering_.ShiftDeadlines(gap);
  newcomers_.ShiftDeadlines(gap);
  names_.ShiftDeadlines(gap);
  gone_.ShiftDeadlines(gap);
  end_.ShiftDeadlines(gap);
  floor_.ShiftDeadlines(gap);
  repair_.ShiftDeadlines(gap);
  saves_.ShiftDeadlines(gap);
  preparation_.ShiftDeadlines(gap);
  for (Worker* worker : roster_.InOrder()) {
    worker->heard += gap;
    worker->progressed += gap;
  }
}

absl::Time Coordinator::NextDeadline() const {
  absl::Time next = last_tick_ + kTickEvery;
  if (life_.deadline() > last_tick_) next = std::min(next, life_.deadline());  // ticks alone judge it, and once
  if (life_.Is(Phase::kWaiting)) {
    if (life_.backoff().until() > advanced_) next = std::min(next, life_.backoff().until());
    next = std::min(next, gathering_.NextDeadline(advanced_, policy_));
  }
  for (const absl::Time when : {pairs_.NextDeadline(advanced_), newcomers_.NextDeadline(advanced_)}) {
    if (when > advanced_) next = std::min(next, when);
  }
  next = std::min({next, repair_.NextDeadline(advanced_), saves_.NextDeadline(advanced_)});
  return std::max(next, now_);
}

void Coordinator::On(const Tick&) {
  LoseTheLifeless();
  drains_.EndLate(Context(), life_, saves_);
  const bool says = !life_.Is(Phase::kRunning) && !life_.Is(Phase::kDone) && !life_.Is(Phase::kEnded) &&
                    now_ - std::max(said_, life_.phase_since()) >= kSayEvery;
  if (says) {
    said_ = now_;
    // The storage's trouble is said by itself.
    const bool in_trouble = life_.Is(Phase::kFinishing) && !saves_.TroubleText(now_).empty();
    if (!in_trouble) out_.Say(Level::kInfo, absl::StrCat("waiting for ", WaitingText(Awaited(Context()))));
  }
  saves_.SayWhatIsSlow(now_, out_, roster_);
}

// ---- the order of things

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
    if (!saves_.storage_verdict().empty()) return EndJob(kExitStorage, saves_.storage_verdict());
    if (!repair_.pending()) saves_.Advance(SaveContext(), out_, roster_);
    if (life_.Is(before) && awaited() == awaited_before) break;
  }
  if (life_.Is(Phase::kDone)) return;
  preparation_.Advance(Context());
  preparation_.TestConnections(Context(), pairs_);
  ServeLeavers();
  HandOverIfSaved();
}

// ---- what the storage, people and supervisors say

void Coordinator::On(const Published& event) {
  const bool amended = event.snapshot == saves_.published();
  if (!saves_.PublishDone(event.snapshot, now_, out_, roster_)) return;
  if (!policy_.training.wait_for_saves) clock_.Saved(now_);
  if (!amended) save_period_.Saved();
  if (const std::string news = policy_.save_automatic ? save_period_.News() : ""; !news.empty()) {
    out_.Say(Level::kInfo, news);
  }
  hosts_.SavePublished(Context(), event.snapshot.step, clock_.trained_for());
  FinishIfPublished();
}

void Coordinator::NoteTaken(uint64_t step) {
  // Members that wait for the save before are asked for the next one by how long ago that was taken.
  if (policy_.training.wait_for_saves) clock_.Saved(now_);
  const uint64_t before = skipped_.count();
  if (skipped_.Taken(step) == 0) return;
  if (std::bit_width(skipped_.count()) == std::bit_width(before)) return;  // said now and then
  out_.Say(Level::kWarning, absl::StrCat(skipped_.count(),
                                         skipped_.count() == 1 ? " save that was due was" : " saves that were due were",
                                         " left out before step ", step,
                                         ", because the one before was not stored yet or a generation "
                                         "had just begun. `checkpoint.when_busy: wait` makes training wait for it"));
}

void Coordinator::On(const StorageFailed& event) {
  if (event.snapshot != SnapshotId()) return saves_.StorageRefused(event, SaveContext(), out_, roster_);
  const std::string what = absl::StrCat("the kernel plan cannot be stored: ", event.message);
  if (!event.may_pass) return EndJob(kExitStorage, what);
  preparation_.StoreRefused(Context(), what);
}

void Coordinator::On(const TermLost& event) {
  // Not EndJob: the workers belong to the newer chief and must not be told anything by this one.
  life_.End();
  out_.Add(Exit{kExitFenced,
                absl::StrCat("term ", event.newer, " was claimed by another chief; this one had term ", term_)});
}

void Coordinator::On(const StopRequested& event) {
  if (event.hands_over) {
    if (end_.pending().has_value() || end_.result().has_value() || !handover_.Ask(event.by)) return;
    return out_.Say(Level::kInfo, absl::StrCat(event.by,
                                               ": saving first; then this chief goes, and the workers wait "
                                               "for the next one"));
  }
  const std::string reason = absl::StrCat("stop requested by ", event.by);
  if (end_.result().has_value() || !end_.Stop({event.exit_code, reason})) return;
  out_.Say(Level::kInfo, absl::StrCat(reason, ": saving first"));
}

void Coordinator::On(const DrainRequested& event) {
  out_.Add(drains_.Decide(Context(), event, end_.result().has_value()));
}

void Coordinator::On(const ProcessExited& event) {
  const Worker* worker = roster_.ByName(event.name);
  const bool counted = gone_.Exited(event.name, worker == nullptr ? std::nullopt : std::optional(worker->id()), now_);
  if (event.last) {
    const std::string how = absl::StrCat("ended with code ", event.exit_code);
    end_.Stop({event.exit_code, absl::StrCat(event.name, ": ", event.cause.empty() ? how : event.cause)});
  }
  if (!IsCrashSignal(event.signal) || counted) return;
  const std::string cause = absl::StrCat(event.name, " died of signal ", event.signal);
  out_.Add(WorkerChanged{event.name, Incarnation(), WorkerChange::kCrashed, cause});
  out_.Say(Level::kError, cause);
  const bool member = worker != nullptr && life_.Runs(*worker);
  CountFailure(worker != nullptr ? worker->host : hosts_.HostOf(event.name), cause,
               member || life_.WasBrokenBy(event.name));
}

void Coordinator::CountFailure(const std::string& host, const std::string& cause, bool broke_generation) {
  const std::string verdict = hosts_.CountFailure(Context(), host, cause, broke_generation);
  // What is trained is saved first.
  if (!verdict.empty() && end_.Stop({kExitBug, verdict})) out_.Say(Level::kError, verdict);
}

void Coordinator::EndJob(int32_t code, const std::string& reason) {
  if (life_.Is(Phase::kEnded)) return;
  life_.End();
  for (const Worker* worker : roster_.InOrder()) out_.Command(*worker, worker->busy, Shutdown{code, reason}, reason);
  out_.Add(Exit{code, reason});
}

// ---- what parts are handed, what people see

CheckpointTracker::Context Coordinator::SaveContext() const {
  return {now_, preparation_.plan().hash(), clock_.trained_for(), history_, floor_.step()};
}

TeamChoice Coordinator::Teams() {
  return TeamChoice(
      {roster_, pairs_, history_, stragglers_.GivingWay(policy_), saves_.FirstUnsaved(), Capacity(policy_), now_});
}

AwaitedFacts Coordinator::Awaited(const CoreContext& context) const {
  return {context, life_, pairs_, gone_, drains_.Text()};
}

CoordinatorView Coordinator::View() {
  CoordinatorView view;
  view.phase = life_.phase();
  view.generation = life_.current().id;
  view.lineage = history_.lineage();
  view.agreed_step = progress_.agreed();
  view.published_step = saves_.published().step;
  view.failures = hosts_.spent();
  view.preemptions = gone_.preemptions();
  view.losses = gone_.losses();
  view.saves_failed = saves_.failed();
  view.saves_skipped = skipped_.count();
  view.storage_trouble = saves_.TroubleText(now_);
  view.drained = drains_.drains().Targets();
  view.hosts = hosts_.Records();
  view.workers = WorkerLines(roster_, life_, stragglers_.marks());
  const CoreContext context = Context();
  if (!life_.Is(Phase::kRunning) && !life_.Is(Phase::kDone)) view.waiting_for = WaitingText(Awaited(context));
  if (saves_.Insists() && !saves_.TroubleText(now_).empty()) view.waiting_for = saves_.TroubleText(now_);
  const std::string trouble = preparation_.plan().TroubleText(now_);
  if (!trouble.empty()) view.waiting_for = trouble;
  if (const std::string way_back = repair_.Text(now_); !way_back.empty()) view.waiting_for = way_back;
  return view;
}

}  // namespace lockstep::chief
