#include "chief/server/chief_loop.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "chief/events/markdown.h"
#include "chief/logs/chief_logs.h"
#include "chief/stats/history_lines.h"
#include "common/checkpoint_format/naming.h"
#include "common/graph/state_layout.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"
#include "common/log/output.h"
#include "common/protocol/recording.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

constexpr size_t kQueuedInputs = 1 << 18;
constexpr size_t kQueuedStorageWork = 4096;
constexpr char kSampleTag[] = "samples/text";
constexpr size_t kMostSampleBytes = 16 << 10;

Progress::Options ProgressOptions(const ChiefLoop::Options& options) {
  const JobSetup& setup = *options.setup;
  Progress::Options progress;
  progress.end_step = setup.policy.training.end_step;
  progress.global_batch = static_cast<uint64_t>(setup.job.train().global_batch_size());
  progress.epoch_samples = static_cast<uint64_t>(setup.facts.train_samples);
  progress.state_mib = static_cast<double>(MakeStateLayout(setup.metagraph).TotalBytes()) / (1 << 20);
  progress.evaluation = setup.policy.training.evaluation;
  progress.evaluated = options.config.recovered.ledger;
  progress.sequences = !setup.facts.labels.shape.empty();
  progress.live = options.live;
  progress.tell = LogEventLine;
  progress.show_live = [](OutputQueue::LiveLine line) {
    ProcessOutput(STDOUT_FILENO).SetLive(STDOUT_FILENO, std::move(line));
  };
  return progress;
}

}  // namespace

ChiefLoop::ChiefLoop(Options options)
    : options_(std::move(options)),
      turned_(absl::ToUnixNanos(clock_.Now())),
      core_(options_.config),
      inputs_(kQueuedInputs),
      progress_(ProgressOptions(options_)),
      stats_(options_.config.policy.job, options_.config.policy.lineage,
             static_cast<int64_t>(options_.config.recovered.term)),
      series_(options_.setup->metagraph.update.schedule, options_.setup->job.train().global_batch_size()),
      event_backlog_("records for TensorBoard",
                     [this](const std::string& records) { return options_.store->AppendEvents(records); }),
      history_backlog_("lines of the job's history",
                       [this](const std::string& lines) { return options_.store->AppendLines(kHistoryFolder, lines); }),
      timeline_(static_cast<int64_t>(options_.config.recovered.term)),
      timeline_backlog_(
          "lines of the job's timeline",
          [this](const std::string& lines) { return options_.store->AppendLines(kTimelineFolder, lines); }),
      log_backlog_("lines of the chief's log",
                   [this](const std::string& lines) { return options_.store->AppendLines(kChiefLogFolder, lines); }),
      last_checkpoint_(options_.store->DescribeCheckpoint(options_.config.recovered.checkpoint.step)),
      storage_(kStorageThread, kQueuedStorageWork) {
  agreed_step_ = options_.config.recovered.checkpoint.step;
  progress_.StartAt(agreed_step_);
  Goodput goodput;
  if (const auto before = options_.store->ReadStats(); before.ok()) {
    stats_.Continue(*before);
    goodput = before->job().goodput();
    goodput.set_no_chief(goodput.no_chief() + SecondsWithoutChief(before->job(), absl::ToUnixMillis(absl::Now())));
  }
  goodput_.StartFrom(clock_.Now(), goodput);
  timeline_.ChiefStarted(absl::Now(), static_cast<int64_t>(options_.config.recovered.checkpoint.step),
                         last_checkpoint_);
  history_.StartFrom(clock_.Now(), stats_.Snapshot(clock_.Now()));
  hooks_ = MakeHooks();
  stats_.SetEndStep(static_cast<int64_t>(options_.config.policy.training.end_step));
  if (!options_.record_path.empty()) {
    record_.open(options_.record_path, std::ios::binary | std::ios::app);
    record_ << RecordConfig(options_.config) << std::flush;
  }
}

bool ChiefLoop::Post(Event event, bool wait) {
  if (std::holds_alternative<StopRequested>(event)) stop_posted_ = true;
  return wait ? inputs_.Push(std::move(event)) : inputs_.TryPush(std::move(event));
}

int ChiefLoop::Run(std::function<absl::Status()> keep_addresses) {
  NameThread(kThreadName);
  keep_addresses_ = std::move(keep_addresses);
  turned_ = absl::ToUnixNanos(clock_.Now());
  Step(Tick{});
  while (!exit_.has_value()) {
    turned_ = absl::ToUnixNanos(clock_.Now());
    TakeTurn();
    const absl::Time now = clock_.Now();
    progress_.Tick(now);
    ServeHooks(now);
    if (now >= next_stats_) WriteStats(now);
    if (storage_watch_.Due(now)) LookAtStorage(now);
  }
  turned_ = std::numeric_limits<int64_t>::max();
  FinishStorage();
  if (exit_->code == kExitDone) EndDrains();
  progress_.Hide();
  // Before the end is recorded: a result that cannot be named is another end.
  const FoundBest best = exit_->code == kExitDone ? FindResult() : FoundBest{};
  const bool done = exit_->code == kExitDone;
  const EvaluationBoard& board = progress_.board();
  const bool at_end = core_.View().published_step >= options_.config.policy.training.end_step || board.ended_early();
  stats_.SetHooks(
      hooks_->marks());  // without the end: a chief that is killed before it is recorded leaves it to the next
  stats_.Ended(exit_->code, exit_->reason, /*completed=*/done && (at_end || !IsStopped()));
  timeline_.ChiefEnded(absl::Now(), exit_->code, exit_->reason);
  timeline_backlog_.Write(timeline_.Take());
  const absl::Status written = options_.store->WriteStats(EncodeStats(clock_.Now()));
  if (!written.ok() && !IsFenced(written)) LS_LOG(warn, "worker statistics: ", written.message());
  if (done || exit_->code == kExitPreempted) {
    progress_.Close(last_checkpoint_, {best.path, best.step, best.value}, done);
  }
  FinishHooks();
  return exit_->code;
}

void ChiefLoop::LookAtStorage(absl::Time now) {
  const std::string news = storage_watch_.Look(now, liveness::StandsAt(kStorageThread, StorageWatch::kSilent));
  if (news.empty()) return;
  LS_LOG(warn, news);
  timeline_.Warned(absl::Now(), news);
}

void ChiefLoop::TakeTurn() {
  const auto handle = [this](Input input) {
    if (burst_.Begins(inputs_.size())) Step(BurstBegins{});
    if (auto* question = std::get_if<Question>(&input)) {
      (*question)();
    } else {
      Step(std::get<Event>(input));
    }
    if (burst_.Ends()) Step(BurstEnds{});
  };
  const auto tick = [this] {
    burst_.Cancel();
    Step(Tick{});
  };
  ticks_.TakeTurn(clock_.Now(), core_.NextDeadline(), inputs_, handle, tick);
}

FoundBest ChiefLoop::FindResult() {
  if (!options_.config.policy.training.evaluation.keep_best) return {};
  absl::StatusOr<FoundBest> found = options_.store->FindBest();
  if (!found.ok()) {
    exit_->code = IsFenced(found.status()) ? kExitFenced : kExitStorage;
    exit_->reason = std::string(found.status().message());
    ReportFailure(found.status());
    return {};
  }
  for (const std::string& message : found->messages) LS_LOG(warn, message);
  return *std::move(found);
}

void ChiefLoop::Step(const Event& event) {
  stop_asked_ = stop_asked_ || std::holds_alternative<StopRequested>(event);
  const absl::Time now = clock_.Now();
  const auto name = [](const auto& alternative) { return std::decay_t<decltype(alternative)>::kTypeName; };
  ShowHooks(event);
  const NowDoing handling("the event ", std::visit(name, event));
  const std::vector<Action> actions = core_.Step(now, event);
  last_events_.Keep(now, event, actions);
  if (record_.is_open()) record_ << RecordStep(now, event, actions) << std::flush;
  TellPosition();
  See(now, actions);
  for (const Action& action : actions) {
    const NowDoing performing("the action ", std::visit(name, action));
    std::visit([this](const auto& alternative) { Perform(alternative); }, action);
  }
}

void ChiefLoop::Perform(const Send& action) { options_.sessions->Send(action.session, action.fence, action.command); }

void ChiefLoop::Perform(const SendToAll& action) {
  options_.sessions->Send(action.sessions, action.fence, action.command);
}

void ChiefLoop::Perform(const CloseSession& action) { options_.sessions->Close(action.session); }

void ChiefLoop::TellPosition() {
  const std::pair<Generation, uint64_t> position(core_.generation(), agreed_step_);
  if (std::exchange(log_position_, position) == position) return;
  SetLogPosition(position.first.term, position.first.counter, position.second);
}

void ChiefLoop::Post(Question question) { inputs_.Push(std::move(question)); }

void ChiefLoop::Perform(const StepsAgreed& action) {
  const Generation& generation = core_.generation();
  // An adopted generation was counted by the chief that formed it.
  if (generation_ != generation && generation.term == options_.config.recovered.term) stats_.GenerationFormed();
  generation_ = generation;
  progress_.SetWorkers(core_.member_count());
  agreed_step_ = action.step;
  TellPosition();
  progress_.On(clock_.Now(), action);
  stats_.Agreed(static_cast<int64_t>(action.step));
  for (const StepRecord& record : action.records) {
    const auto step = static_cast<int64_t>(record.step);
    if (step <= told_step_) series_.WentBack();
    told_step_ = step;
    events_.Trained(absl::Now(), told_step_, series_.OfStep(told_step_, record.loss));
  }
  if (!action.records.empty()) TellSeries(/*at_end=*/false);
  ShowHooks(clock_.Now(), action);
}

void ChiefLoop::Perform(const EvaluationDone& action) {
  progress_.On(action);
  Scalars values;
  for (const NamedValue& value : progress_.board().metrics()) {
    values.emplace_back(absl::StrCat("evaluation/", value.name), value.value);
  }
  events_.Measured(absl::Now(), static_cast<int64_t>(action.step), values);
  const auto format = [](std::string* out, const std::pair<std::string, double>& value) {
    absl::StrAppend(out, absl::StripPrefix(value.first, "evaluation/"), " ", absl::StrFormat("%.6g", value.second));
  };
  timeline_.Evaluated(absl::Now(), static_cast<int64_t>(action.step), absl::StrJoin(values, ", ", format));
  hooks_->Evaluated(static_cast<int64_t>(action.step));
}

void ChiefLoop::Perform(const SampleTold& action) {
  progress_.On(action);
  events_.Noted(absl::Now(), static_cast<int64_t>(action.step), kSampleTag,
                MarkdownBlock(action.text, kMostSampleBytes));
  storage_.Post([this, action] {
    const absl::Status status = options_.store->WriteSample(static_cast<int64_t>(action.step), action.text);
    if (!status.ok() && !IsFenced(status)) LS_LOG(warn, "sample of step ", action.step, ": ", status.message());
  });
}

void ChiefLoop::Perform(const Announce& action) {
  switch (action.level) {
    case Level::kInfo:
      LS_LOG(info, action.text);
      break;
    case Level::kWarning:
      LS_LOG(warn, action.text);
      break;
    case Level::kError:
      LS_LOG(error, action.text);
      break;
  }
}

void ChiefLoop::Perform(const Exit& action) {
  exit_ = action;
  progress_.Hide();
  if (action.code == kExitBug) {
    storage_.Post([this, text = last_events_.Text()] {
      const absl::Status status = options_.store->WriteLastEvents(text);
      if (!status.ok()) LS_LOG(warn, "the last events of this chief were not written: ", status.message());
    });
  }
  if (action.code != kExitDone && action.code != kExitPreempted) ReportFailure(absl::UnknownError(action.reason));
}

proto::StatusReply ChiefLoop::Describe() {
  const absl::Time now = clock_.Now();
  const CoordinatorView view = core_.View();
  const JobPolicy& policy = options_.config.policy;
  proto::StatusReply reply;
  reply.set_job(policy.job);
  reply.set_term(options_.config.recovered.term);
  reply.set_lineage(view.lineage);
  reply.set_phase(PhaseName(view.phase));
  reply.mutable_generation()->set_term(view.generation.term);
  reply.mutable_generation()->set_counter(view.generation.counter);
  reply.set_step(view.agreed_step);
  reply.set_end_step(policy.training.end_step);
  reply.set_published_step(view.published_step);
  reply.set_failures(view.failures);
  reply.set_failures_allowed(policy.max_failures);
  reply.set_preemptions(view.preemptions);
  reply.set_losses(view.losses);
  reply.set_waiting_for(view.waiting_for);
  reply.set_loss(progress_.loss());
  reply.set_samples_per_second(progress_.samples_per_second(now));
  reply.set_eta_seconds(progress_.eta_seconds(now));
  stats_.SetSaves(static_cast<int64_t>(view.saves_failed), static_cast<int64_t>(view.saves_skipped));
  reply.set_saves_failed(static_cast<uint64_t>(stats_.job().saves_failed()));
  reply.set_saves_skipped(static_cast<uint64_t>(stats_.job().saves_skipped()));
  reply.set_storage_trouble(storage_watch_.stands().empty()
                                ? view.storage_trouble
                                : absl::StrCat("it does not answer: ", storage_watch_.stands()));
  reply.set_goodput(GoodputShare(goodput_.Totals(now)));
  DescribeWorkers(now, view, reply);
  for (const std::string& target : view.drained) reply.add_drained(target);
  DescribeRepairs(reply);
  const EvaluationBoard& board = progress_.board();
  reply.set_evaluation_step(board.step());
  reply.set_metric(board.metric());
  reply.set_best_step(board.best_step());
  reply.set_best_value(board.best_value());
  for (const NamedValue& value : board.metrics()) {
    proto::NamedValue& named = *reply.add_evaluation();
    named.set_name(value.name);
    named.set_value(value.value);
  }
  return reply;
}

}  // namespace lockstep::chief
