#include "chief/server/chief_loop.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/events/graph_event.h"
#include "chief/events/image_event.h"
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

JobRecords::Options RecordOptions(const ChiefLoop::Options& options, const std::string& checkpoint) {
  JobRecords::Options records;
  records.job = options.config.policy.job;
  records.lineage = options.config.policy.lineage;
  records.term = options.config.recovered.term;
  records.step = static_cast<int64_t>(options.config.recovered.checkpoint.step);
  records.checkpoint = checkpoint;
  records.end_step = static_cast<int64_t>(options.config.policy.training.end_step);
  records.global_batch = options.setup->job.train().global_batch_size();
  if (auto before = options.store->ReadStats(); before.ok()) records.before = *std::move(before);
  return records;
}

// For TensorBoard, beside what training tells it.
std::string MetagraphEvents(const JobSetup& setup) {
  return absl::StrCat(GraphRecords(absl::Now(), setup.metagraph, setup.fingerprint, setup.account),
                      ImagesRecord(absl::Now(), setup.facts.images));
}

}  // namespace

ChiefLoop::ChiefLoop(Options options)
    : options_(std::move(options)),
      turned_(absl::ToUnixNanos(clock_.Now())),
      core_(options_.config),
      inputs_(kQueuedInputs),
      progress_(ProgressOptions(options_)),
      last_checkpoint_(options_.store->DescribeCheckpoint(options_.config.recovered.checkpoint.step)),
      records_(Now(), RecordOptions(options_, last_checkpoint_)),
      writer_(options_.store, options_.log, [this] { return MetagraphEvents(*options_.setup); }),
      storage_(kStorageThread, kQueuedStorageWork) {
  agreed_step_ = options_.config.recovered.checkpoint.step;
  progress_.StartAt(agreed_step_);
  hooks_ = MakeHooks();
  if (!options_.record_path.empty()) {
    record_.open(options_.record_path, std::ios::binary | std::ios::app);
    record_ << RecordConfig(options_.config) << std::flush;
  }
}

JobRecords::Instant ChiefLoop::Now() const { return {clock_.Now(), absl::Now()}; }

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
  // Without the end: a chief that is killed before it is recorded leaves it to the next.
  records_.SetHooks(hooks_->marks());
  records_.Ended(Now(), *exit_, /*completed=*/done && (at_end || !IsStopped()));
  writer_.WriteEnd(records_.EncodedStats(Now(), core_.View()), records_.TakeTimeline());
  if (done || exit_->code == kExitPreempted) {
    progress_.Close(last_checkpoint_, {best.path, best.step, best.value}, done);
  }
  FinishHooks();
  return exit_->code;
}

void ChiefLoop::LookAtStorage(absl::Time now) {
  const std::string news = storage_watch_.Look(now, liveness::LongActivityOf(kStorageThread, StorageWatch::kSilent));
  if (news.empty()) return;
  LS_LOG(warn, news);
  records_.Warned(Now(), news);
}

void ChiefLoop::TakeTurn() {
  const auto handle = [this](Input input) {
    if (burst_.Begins(inputs_.size())) Step(BurstBegins{});
    if (auto* question = std::get_if<LoopTask>(&input)) {
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
  records_.Saw({now, absl::Now()}, actions, Present());
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

void ChiefLoop::Post(LoopTask question) { inputs_.Push(std::move(question)); }

void ChiefLoop::Perform(const StepsAgreed& action) {
  progress_.SetWorkers(core_.member_count());
  agreed_step_ = action.step;
  TellPosition();
  progress_.On(clock_.Now(), action);
  records_.Agreed(Now(), action, core_.generation(), core_.member_count());
  ShowHooks(clock_.Now(), action);
}

void ChiefLoop::Perform(const EvaluationDone& action) {
  progress_.On(action);
  records_.Evaluated(Now(), static_cast<int64_t>(action.step), progress_.board().metrics());
  hooks_->Evaluated(static_cast<int64_t>(action.step));
}

void ChiefLoop::Perform(const RecordSample& action) {
  progress_.On(action);
  records_.Sampled(Now(), static_cast<int64_t>(action.step), action.text);
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

}  // namespace lockstep::chief
