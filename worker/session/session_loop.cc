#include "worker/session/session_loop.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/liveness/dump.h"
#include "common/log/log.h"
#include "common/protocol/recording.h"
#include "common/status/exit_code.h"
#include "worker/session/job_end.h"

namespace lockstep::worker {
namespace {

constexpr size_t kQueuedInputs = 65536;
constexpr absl::Duration kTickEvery = absl::Milliseconds(500);
constexpr absl::Duration kBeatEvery = absl::Milliseconds(500);
constexpr absl::Duration kFlushLimit = absl::Seconds(1);
// What takes longer is told to the chief.
constexpr absl::Duration kTellsAfter = absl::Seconds(1);

const char* PhaseName(SessionCore::Phase phase) {
  switch (phase) {
    case SessionCore::Phase::kIdle:
      return "outside of a generation";
    case SessionCore::Phase::kPreparing:
      return "preparing";
    case SessionCore::Phase::kReturning:
      return "going back";
    case SessionCore::Phase::kForming:
      return "forming";
    case SessionCore::Phase::kSyncing:
      return "receiving the state";
    case SessionCore::Phase::kRunning:
      return "running";
    case SessionCore::Phase::kHolding:
      return "waiting at a step boundary";
    case SessionCore::Phase::kStopping:
      return "stopping a step";
    case SessionCore::Phase::kExited:
      return "ending";
  }
  return "";
}

}  // namespace

SessionLoop::SessionLoop(Options options)
    : options_(std::move(options)),
      core_(options_.core),
      inputs_(kQueuedInputs),
      started_(clock_.Now()),
      next_tick_(started_ + kTickEvery),
      turned_(absl::ToUnixNanos(started_)),
      client_(options_.chief),
      engine_({.peer_host = options_.peer_host,
               .peer_listener = options_.peer_listener,
               .client = &client_,
               .post = [this](Event event) { PostOfEngine(std::move(event)); },
               .fence = [this] { return fence(); },
               .send_store = [this](const Generation& generation, const std::string& key,
                                    const std::string& value) { SendStoreKey(generation, key, value); },
               .device = options_.device,
               .data_roots = options_.data_roots}),
      uploader_(options_.chief.key,
                [this](const ShareJob& job, const absl::Status& status) {
                  if (status.ok()) {
                    Post(ShareUploaded{job.snapshot, job.share, job.shares});
                  } else {
                    Post(ShareUploadFailed{job.snapshot, job.share, job.shares, std::string(status.message())});
                  }
                }),
      tester_({.own_host = options_.peer_host,
               .done = [this](const PeersTested& result) { Post(PeersTestedHere{result}); }}),
      heartbeat_({.client = &client_,
                  .interval = kBeatEvery,
                  .signs =
                      [this] {
                        return LifeSigns{engine_.progress() + uploader_.bytes_sent(), engine_.waits_for_peer(),
                                         liveness::LongActivityOf(Engine::kThreadName, kTellsAfter)};
                      },
                  .answered = [this](Term term) { Post(BeatAnswered{term}); }}) {
  if (!options_.record_path.empty()) {
    record_.open(options_.record_path, std::ios::binary | std::ios::app);
    record_ << RecordConfig(options_.core) << std::flush;
  }
}

SessionLoop::~SessionLoop() {
  inputs_.Close();
  client_.Shutdown();
  std::shared_ptr<ChiefStream> stream;
  MutexLock lock(&mutex_);
  stream.swap(stream_);
}

void SessionLoop::Post(Event event, uint64_t stream) { inputs_.Push({std::move(event), stream}); }

void SessionLoop::PostOfEngine(Event event) {
  if (!std::holds_alternative<StepFinished>(event) || !inputs_.BeginAtOnce()) return Post(std::move(event));
  if (!exit_code_.has_value()) Handle({std::move(event)});
  // The thread of Run sleeps until `due_`.
  EndTurn(exit_code_.has_value() || core_.NextDeadline() < due_);
}

int SessionLoop::Run() {
  NameThread("session");
  absl::Duration wait = absl::ZeroDuration();
  for (bool first = true;; first = false) {
    const std::optional<Input> input = inputs_.Begin(wait);
    if (first) Step(Tick{});
    if (input.has_value() && !exit_code_.has_value()) Handle(*input);
    TickIfDue();
    const std::optional<int> exit_code = exit_code_;
    due_ = std::min(next_tick_, core_.NextDeadline());
    wait = due_ - clock_.Now();
    EndTurn(/*interrupt=*/false);
    if (exit_code.has_value()) return *exit_code;
  }
}

void SessionLoop::Handle(const Input& input) {
  if (input.stream != 0 && input.stream != stream_number_) return;
  if (std::holds_alternative<ChiefConnected>(input.event)) ever_connected_ = true;
  Step(input.event);
  // Done may have been lost on its way. What an earlier chief left says nothing of a job that was taken up again.
  const bool cut_off = std::holds_alternative<ChiefDisconnected>(input.event) && ever_connected_;
  if (cut_off && fence().term != 0) LeaveWhenDone(fence().term);
}

void SessionLoop::TickIfDue() {
  if (exit_code_.has_value() || clock_.Now() < std::min(next_tick_, core_.NextDeadline())) return;
  Step(Tick{});
  next_tick_ = clock_.Now() + kTickEvery;
  GiveUpUnreachable();
}

void SessionLoop::EndTurn(bool interrupt) {
  turned_ = absl::ToUnixNanos(clock_.Now());
  {
    MutexLock lock(&mutex_);
    shown_.phase = core_.phase();
    const Generation generation = core_.generation();
    if (generation != shown_.generation || shown_.step != core_.position().step) {
      SetLogPosition(generation.term, generation.counter, core_.position().step);
    }
    shown_.generation = generation;
    shown_.step = core_.position().step;
  }
  inputs_.End(interrupt);
}

std::string SessionLoop::Status() const {
  MutexLock lock(&mutex_);
  if (shown_.name.empty()) return "";
  return absl::StrCat(shown_.name, " ", PhaseName(shown_.phase), ", step ", shown_.step);
}

PresentWorker SessionLoop::Present() const {
  PresentWorker present;
  {
    MutexLock lock(&mutex_);
    present.name = shown_.name;
    if (!shown_.name.empty()) present.phase = PhaseName(shown_.phase);
    present.step = shown_.step;
  }
  present.statistics = Statistics();
  return present;
}

std::vector<NamedValue> SessionLoop::Statistics() const {
  std::vector<NamedValue> statistics = engine_.Stats();
  statistics.push_back({"bytes_uploaded", static_cast<double>(uploader_.bytes_sent())});
  return statistics;
}

void SessionLoop::LeaveWhenDone(Term least) {
  if (exit_code_.has_value()) return;
  const std::optional<JobEnd> end = FindJobEnd(options_.chief.file);
  if (!end.has_value() || end->term < least) return;
  LS_LOG(info, "no chief answers, and the job's directory says: ", end->reason);
  exit_code_ = kExitDone;
}

void SessionLoop::GiveUpUnreachable() {
  if (ever_connected_ || clock_.Now() - started_ < options_.connect_timeout) return;
  const absl::StatusOr<std::string> address = client_.Address();
  LeaveWhenDone(/*least=*/0);
  if (exit_code_.has_value()) return;
  // A file that gives no address yet is one without a chief; one that is damaged, or of a copy, says so itself.
  const std::string why = address.ok() || absl::IsNotFound(address.status())
                              ? "; is it running, is its job over already, is the address right?"
                              : absl::StrCat(": ", address.status().message());
  ReportFailure(absl::UnavailableError(absl::StrCat("no chief answered at ", address.value_or(options_.chief.file),
                                                    " for ", absl::FormatDuration(options_.connect_timeout), why)));
  exit_code_ = kExitChiefUnreachable;
}

void SessionLoop::Step(const Event& event) {
  if (const auto* command = std::get_if<CommandReceived>(&event)) {
    if (const auto* welcome = std::get_if<Welcome>(&command->command)) {
      SetLogWorker(welcome->name);
      SetLivenessRole(welcome->name);
      MutexLock lock(&mutex_);
      shown_.name = welcome->name;
    }
  }
  const absl::Time now = clock_.Now();
  const std::vector<Action> actions = core_.Step(now, event);
  if (record_.is_open()) {
    record_ << RecordStep(now, event, actions) << std::flush;
  }
  DescribeHang(actions);
  for (const Action& action : actions) {
    const NowDoing performing(
        "the action ", std::visit([](const auto& one) { return std::decay_t<decltype(one)>::kTypeName; }, action));
    std::visit([this](const auto& alternative) { Perform(alternative); }, action);
  }
}

void SessionLoop::DescribeHang(const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    const auto* const exit = std::get_if<Exit>(&action);
    if (exit != nullptr && exit->stuck) hang_ = DumpForLine(exit->reason);
  }
}

void SessionLoop::Perform(const Connect&) {
  std::shared_ptr<ChiefStream> old;
  {
    MutexLock lock(&mutex_);
    old.swap(stream_);
  }
  old.reset();
  const uint64_t number = ++stream_number_;
  auto stream = std::make_shared<ChiefStream>(
      &client_, ChiefStream::Callbacks{
                    .opened = [this, number] { Post(ChiefConnected{}, number); },
                    .command =
                        [this, number](FencedCommand command) {
                          Post(CommandReceived{command.fence, std::move(command.command)}, number);
                        },
                    .closed =
                        [this, number](const absl::Status& status, bool handed_over) {
                          Post(ChiefDisconnected{std::string(status.message()),
                                                 absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status),
                                                 handed_over},
                               number);
                        }});
  MutexLock lock(&mutex_);
  stream_ = std::move(stream);
}

void SessionLoop::Perform(const Disconnect&) {
  ++stream_number_;  // what still comes from the stream is of no interest
  std::shared_ptr<ChiefStream> old;
  MutexLock lock(&mutex_);
  old.swap(stream_);
}

void SessionLoop::Perform(const Send& action) {
  // A Hello names no term; what else is said meanwhile still belongs to the last one.
  if (!std::holds_alternative<Hello>(action.message)) SetFence(action.fence);
  std::shared_ptr<ChiefStream> stream;
  {
    MutexLock lock(&mutex_);
    stream = stream_;
  }
  if (stream == nullptr) return;
  if (const auto* report = std::get_if<Report>(&action.message)) {
    Report with_stats = *report;
    with_stats.stats = Statistics();
    stream->Send(action.fence, with_stats);
    return;
  }
  if (const auto* left = std::get_if<Left>(&action.message); left != nullptr && !hang_.empty()) {
    stream->Send(action.fence, Left{left->exit_code, absl::StrCat(left->reason, hang_)});
    return;
  }
  stream->Send(action.fence, action.message);
}

void SessionLoop::Perform(const SetPhase& action) {
  SetFence(action.fence);
  heartbeat_.Set(action.fence, action.phase, action.position);
}

void SessionLoop::Perform(const TestConnections& action) { tester_.Test(action.round, action.peers); }

void SessionLoop::Perform(const UploadShare& action) {
  const auto failed = [&](absl::string_view why) {
    Post(ShareUploadFailed{action.snapshot, action.share, action.shares, std::string(why)});
  };
  const auto address = client_.Address();
  if (!address.ok()) return failed(address.status().message());
  HeldSnapshot held = engine_.snapshots().Find(action.snapshot);
  if (held.state == nullptr) return failed("the snapshot is not held here");
  const absl::Status started = uploader_.Start({*address, action.fence, action.snapshot, action.share, action.shares,
                                                std::move(held.state), std::move(held.digests)});
  if (!started.ok()) failed(started.message());
}

void SessionLoop::Perform(const DropSnapshot& action) {
  engine_.snapshots().Drop(action.snapshot);
  uploader_.Cancel(action.snapshot);
}

void SessionLoop::Perform(const Announce& action) {
  if (action.warning) {
    LS_LOG(warn, action.text);
  } else {
    LS_LOG(info, action.text);
  }
}

void SessionLoop::Perform(const Exit& action) {
  std::shared_ptr<ChiefStream> stream;
  {
    MutexLock lock(&mutex_);
    stream.swap(stream_);
  }
  ++stream_number_;
  if (stream != nullptr) stream->Flush(kFlushLimit);
  if (action.code != kExitDone && action.code != kExitPreempted) {
    ReportFailure(absl::UnknownError(absl::StrCat(action.reason, hang_)));
  } else if (hang_.empty()) {
    LS_LOG(info, action.reason);
  } else {
    LS_LOG(error, action.reason, hang_);
  }
  exit_code_ = action.code;
}

void SessionLoop::SetFence(const WorkerFence& fence) {
  MutexLock lock(&mutex_);
  fence_ = fence;
}

WorkerFence SessionLoop::fence() const {
  MutexLock lock(&mutex_);
  return fence_;
}

void SessionLoop::SendStoreKey(const Generation& generation, const std::string& key, const std::string& value) {
  std::shared_ptr<ChiefStream> stream;
  WorkerFence current;
  {
    MutexLock lock(&mutex_);
    stream = stream_;
    current = fence_;
  }
  if (stream != nullptr) stream->Send(current, StoreSet{generation, key, value});
}

}  // namespace lockstep::worker
