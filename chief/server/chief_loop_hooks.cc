// What the loop does for the hooks of a job: shows them what happens, and serves what they ask for.
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "chief/server/chief_loop.h"
#include "common/checkpoint_format/naming.h"
#include "common/log/log.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

constexpr size_t kMostObservationBytes = 1 << 20;
constexpr absl::Duration kLookEvery = absl::Milliseconds(20);
constexpr absl::Duration kLinesEvery = absl::Seconds(2);

}  // namespace

std::unique_ptr<HookDesk> ChiefLoop::MakeHooks() {
  HookDesk::Options desk;
  desk.job = options_.setup->job;
  desk.epoch_samples = options_.setup->facts.train_samples;
  desk.marks = records_.stats().job().hooks();
  desk.facts = [this] { return FactsForHooks(); };
  desk.keep_output = [store = options_.store](const std::string& name, const std::string& text) {
    const absl::Status kept = store->WriteHookOutput(name, text);
    if (!kept.ok()) return std::string();
    return store->Describe(absl::StrCat(layout::kHookLogs, "/", name, ".txt"));
  };
  return std::make_unique<HookDesk>(std::move(desk));
}

void ChiefLoop::ShowHooks(const Event& event) {
  const auto* const message = std::get_if<FromWorker>(&event);
  if (message == nullptr) return;
  const auto* const error = std::get_if<ErrorReport>(&message->message);
  if (error == nullptr || error->exit_code != kExitBadData) return;
  // A member reports so of the step behind the agreed ones, whose gradient is not finite.
  const CoordinatorView view = core_.View();
  const Worker* const worker = core_.Find(message->fence.incarnation);
  for (const auto& line : view.workers) {
    if (worker == nullptr || line.name != worker->name() || line.rank < 0) continue;
    return hooks_->NotFinite(static_cast<int64_t>(view.agreed_step) + 1);
  }
}

void ChiefLoop::ShowHooks(absl::Time now, const StepsAgreed& action) {
  for (const StepRecord& record : action.records) {
    if (record.skipped || !std::isfinite(record.loss)) hooks_->NotFinite(static_cast<int64_t>(record.step));
  }
  hooks_->Agreed(now, static_cast<int64_t>(action.step));
}

void ChiefLoop::ServeHooks(absl::Time now) {
  if (const std::string hook = hooks_->TakeStop(); !hook.empty() && !exit_.has_value()) {
    Step(StopRequested{absl::StrCat("hook ", hook), kExitDone});
  }
  if (hooks_->TakeNews()) WriteSoon(now);  // a chief that is killed later must not repeat what fired
}

HookFacts ChiefLoop::FactsForHooks() {
  const CoordinatorView view = core_.View();
  HookFacts facts;
  facts.now = absl::Now();
  facts.job = options_.config.policy.job;
  facts.directory = options_.store->Describe("");
  facts.agreed_step = static_cast<int64_t>(view.agreed_step);
  if (records_.told_step() > 0) facts.loss = progress_.loss();
  const EvaluationBoard& board = progress_.board();
  facts.evaluation_step = static_cast<int64_t>(board.step());
  for (const NamedValue& value : board.metrics()) facts.evaluation.emplace_back(value.name, value.value);
  facts.checkpoint = last_checkpoint_;
  facts.checkpoint_step = static_cast<int64_t>(view.published_step);
  if (exit_.has_value()) {
    facts.exit_code = exit_->code;
    facts.reason = exit_->reason;
  }
  return facts;
}

HookMarks ChiefLoop::MarksAtEnd() {
  HookMarks marks = hooks_->marks();
  if (exit_->code == kExitDone || exit_->code == kExitPreempted) {
    marks.set_ended(static_cast<int64_t>(core_.View().published_step));
  }
  return marks;
}

bool ChiefLoop::IsStopped() {
  return stop_asked_ || StopsAt(options_.config.policy.training, core_.View().published_step);
}

void ChiefLoop::KeepEnd() {
  records_.SetHooks(MarksAtEnd());
  writer_.WriteEnd(records_.EncodedStats(Now(), core_.View()), records_.TakeTimeline());
}

void ChiefLoop::FinishHooks() {
  const int code = exit_->code;
  if (code == kExitFenced) hooks_->Cancel();  // they are the other chief's now
  // A job that a signal interrupts goes on.
  const bool ends = code != kExitFenced && code != kExitPreempted;
  ends ? hooks_->Ended(static_cast<int64_t>(core_.View().agreed_step)) : hooks_->Close();
  stop_posted_ = false;
  absl::Time next_lines = clock_.Now();
  while (!hooks_->idle()) {
    if (stop_posted_) hooks_->Cancel();
    // People may still ask how the job is; events of workers mean nothing any more.
    if (auto input = inputs_.Pop(kLookEvery); input.has_value()) {
      if (auto* question = std::get_if<LoopTask>(&*input)) (*question)();
    }
    if (clock_.Now() < next_lines) continue;
    writer_.WriteLog();
    next_lines = clock_.Now() + kLinesEvery;
  }
  hooks_->TellDropped();
}

void ChiefLoop::Perform(const RecordObservation& action) {
  if (action.content.size() > kMostObservationBytes) {
    LS_LOG(warn, "hook ", action.hook, " of step ", action.step, ": ", action.content.size(),
           " bytes of statistics are too many; name fewer tensors");
    return;
  }
  Observed observed;
  if (!observed.ParseFromString(action.content)) return;
  if (observed.has_trace()) return KeepTrace(action, observed.trace());
  records_.Observed(Now(), action.hook, static_cast<int64_t>(action.step), observed);
}

void ChiefLoop::KeepTrace(const RecordObservation& told, const TracePiece& piece) {
  std::optional<WholeTrace> trace = traces_.Take(told.hook, static_cast<int64_t>(told.step), piece);
  if (!trace.has_value()) return;
  storage_.Post([store = options_.store, hook = told.hook, step = told.step, trace = *std::move(trace)] {
    const std::string begin = absl::StrCat("hook ", hook, " of step ", step, ": the trace of ", trace.about);
    const absl::Status kept = store->WriteTrace(trace.file, trace.bytes);
    if (kept.ok()) {
      LS_LOG(info, begin, " is in ", store->Describe(absl::StrCat(layout::kProfiles, "/", trace.file)));
    } else {
      LS_LOG(warn, begin, " could not be kept: ", kept.message());
    }
  });
}

}  // namespace lockstep::chief
