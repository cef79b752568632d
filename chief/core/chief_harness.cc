#include "chief/core/chief_harness.h"

#include <utility>

#include "common/protocol/member_list.h"
#include "common/protocol/recording.h"

namespace lockstep::chief {

ChiefHarness::ChiefHarness(Options options) : config_(MakeConfig(options)), core_(config_) {
  record_ = RecordConfig(config_);
  Do(Tick{});
  for (uint32_t i = 0; i < options.workers; ++i) Connect(i);
}

FakeWorker& ChiefHarness::NewProcess(int index) {
  workers_[index] = FakeWorker();
  FakeWorker& worker = workers_[index];
  worker.id = Incarnation{7, ++processes_};
  worker.hello.preferred_name = absl::StrCat("worker-", index);
  worker.hello.host = absl::StrCat("host-", index);
  worker.hello.peer_address = absl::StrCat("10.0.0.", index, ":", processes_);
  return worker;
}

void ChiefHarness::Connect(int index) {
  FakeWorker& w = worker(index);
  w.session = ++sessions_;
  w.connected = true;
  Hello hello = w.hello;
  hello.has_state = w.has_state;
  hello.lineage = w.lineage;
  hello.position = w.position;
  if (w.position.evaluated_slices >= config_.policy.training.eval_slices) hello.ledger.step = w.position.step;
  hello.leaving = w.leaving;
  hello.activity = w.generation.IsNone() ? Activity::kIdle : Activity::kRunning;
  const bool at_end = w.position.step >= config_.policy.training.end_step;
  if (!w.generation.IsNone() && at_end) hello.activity = Activity::kFinished;
  hello.generation = w.generation;
  NameMembers(w.members, w.id, hello);
  hello.snapshots.assign(w.snapshots.begin(), w.snapshots.end());
  hello.kept = w.kept;
  if (w.has_state) hello.ready = w.ready;
  hello.highest_term = w.term;
  Do(FromWorker{w.session, WorkerFence{"", 0, w.id}, hello});
}

void ChiefHarness::Reset(int index, const std::string& reason) {
  FakeWorker& w = worker(index);
  w.connected = false;
  Do(SessionClosed{w.session, reason});
}

void ChiefHarness::Say(int index, WorkerMessage message) {
  FakeWorker& w = worker(index);
  Do(FromWorker{w.session, WorkerFence{config_.policy.job, w.term, w.id}, std::move(message)});
}

void ChiefHarness::Apply(int index, uint64_t step) {
  FakeWorker& w = worker(index);
  w.position = Position{step, 0};
  Report report{w.generation, w.lineage, w.position, {}, {}, {}};
  if (!w.members.empty() && w.members[0].incarnation == w.id) report.records = {StepRecord{step, 0.5}};
  if (w.connected) Say(index, report);
}

void ChiefHarness::Audit(int index) {
  FakeWorker& w = worker(index);
  Say(index, Report{w.generation, w.lineage, w.position, {}, {{w.position, DigestOf(w)}}, {}});
}

void ChiefHarness::TakeSnapshotAt(int index, SnapshotCause cause) {
  FakeWorker& w = worker(index);
  const SnapshotId snapshot{w.lineage, w.position.step, DigestOf(w)};
  w.snapshots.insert(snapshot);
  // Steps evaluate before they save; one at rest may have stopped halfway.
  const bool halfway =
      cause == SnapshotCause::kAtRest && w.position.evaluated_slices < config_.policy.training.eval_slices;
  EvaluationLedger ledger;
  if (!halfway) ledger.step = snapshot.step;
  Say(index, SnapshotTaken{w.generation, snapshot, cause, ledger});
}

void ChiefHarness::ComeToBoundary(int index) {
  FakeWorker& w = worker(index);
  const AtBoundary message{w.generation, w.lineage, w.position, "", w.leaving, w.kept};
  w.generation = Generation();
  Say(index, message);
}

void ChiefHarness::Advance(absl::Duration duration) {
  const absl::Time end = now_ + duration;
  while (now_ < end && !ended()) {
    now_ = std::min(end, now_ + absl::Milliseconds(500));
    for (auto& [index, w] : workers_) {
      if (!w.connected || !w.beating) continue;
      Do(HeartbeatReceived{WorkerFence{config_.policy.job, w.term, w.id}, {w.phase, w.progress, w.position}});
    }
    Do(Tick{});
  }
}

void ChiefHarness::Do(const Event& event) {
  queue_.push_back(event);
  if (running_) return;
  running_ = true;
  while (!queue_.empty()) {
    const Event next = queue_.front();
    queue_.pop_front();
    const std::vector<Action> actions = core_.Step(now_, next);
    record_ += RecordStep(now_, next, actions);
    for (const Action& action : actions) {
      actions_.push_back(action);
      std::visit([this](const auto& alternative) { Carry(alternative); }, action);
    }
  }
  running_ = false;
}

CoordinatorConfig ChiefHarness::MakeConfig(const Options& options) {
  CoordinatorConfig config;
  config.policy = options.policy;
  config.policy.job = "job-1";
  config.policy.lineage = "lineage-1";
  config.policy.metagraph = "graph-1";
  config.policy.training.end_step = options.end_step;
  config.policy.training.logical_shards = options.logical_shards;
  config.policy.min_workers = options.min;
  config.policy.max_workers = options.max;
  config.policy.expected_workers = options.expected == 0 ? std::max(options.workers, 1u) : options.expected;
  if (options.expected == kNotTold) config.policy.expected_workers = 0;
  config.recovered.term = options.term;
  config.recovered.checkpoint = SnapshotId{options.checkpoint_lineage, options.checkpoint_step,
                                           absl::StrCat("digest-of-", options.checkpoint_step)};
  config.recovered.evaluated = options.evaluated;
  config.recovered.drains = options.drains;
  config.recovered.plan_hash = options.plan;
  config.recovered.data_digest = options.plan.empty() ? "" : "data-1";
  return config;
}

void ChiefHarness::Carry(const Send& action) {
  for (auto& [index, w] : workers_) {
    if (w.session != action.session || !w.connected) continue;
    sent_[w.id].push_back(action);
    if (std::holds_alternative<Welcome>(action.command)) {
      w.term = action.fence.term;
      w.name = std::get<Welcome>(action.command).name;
    }
    if (!w.mute) {
      std::visit([&, i = index](const auto& command) { Obey(i, workers_[i], action.fence, command); }, action.command);
    }
    return;
  }
}

void ChiefHarness::Carry(const StoreManifest& action) {
  if (!storing) return;
  if (!storage_error.empty()) return Do(StorageFailed{action.snapshot, storage_error, storage_may_pass});
  Do(ManifestStored{action.snapshot, action.snapshot.digest + recomputed_suffix});
}

void ChiefHarness::Carry(const CloseSession& action) {
  for (auto& [index, w] : workers_) {
    if (w.session == action.session && w.connected) {
      w.connected = false;
      Do(SessionClosed{action.session, "closed by the chief"});
    }
  }
}

void ChiefHarness::Carry(const SendToAll& action) {
  for (const SessionId session : action.sessions) Carry(Send{session, action.fence, action.command, action.reason});
}

void ChiefHarness::Obey(int index, FakeWorker& w, const ChiefFence&, const Welcome&) {
  for (const SnapshotId& snapshot : std::set<SnapshotId>(w.snapshots)) {
    Say(index, SnapshotTaken{w.generation, snapshot, SnapshotCause::kDue, {.step = snapshot.step}});
  }
}

void ChiefHarness::Obey(int index, FakeWorker& w, const ChiefFence&, const MakePlan&) {
  w.can_run = !w.cannot_run_its_own;
  Say(index, PlanMade{w.ready.plan_hash, "bytes", w.ready.data_digest});
}

void ChiefHarness::Obey(int index, FakeWorker& w, const ChiefFence&, const Prepare& command) {
  if (!w.can_run) return Say(index, PrepareFailed{PrepareProblem::kCannotRun, "no AVX-512 here"});
  w.ready.plan_hash = command.plan_hash;
  w.ready.settings = command.settings;
  Say(index, w.ready);
}

void ChiefHarness::Obey(int index, FakeWorker& w, const ChiefFence&, const TestPeers& command) {
  if (!w.tests) return;
  PeersTested answer{command.round, {}, {}, ""};
  for (const Member& peer : command.peers) {
    const bool fails = w.unreachable.count(peer.name) != 0;
    (fails ? answer.failed : answer.reached).push_back(peer.incarnation);
    if (fails) answer.message = "connection refused";
  }
  Say(index, answer);
}

void ChiefHarness::Obey(int index, FakeWorker& w, const ChiefFence& fence, const Form& command) {
  w.generation = fence.generation;
  w.members = command.members;
  w.has_state = true;
  w.lineage = command.lineage;
  w.position = command.position;
  w.requests.clear();
  if (on_form && on_form(index)) return;
  Say(index, Formed{fence.generation, w.position, DigestOf(w)});
}

void ChiefHarness::Obey(int index, FakeWorker& w, const ChiefFence& fence, const Verdict&) {
  w.generation = Generation();
  Say(index, VerdictAck{fence.generation, w.has_state, w.lineage, w.position, "", w.kept});
}

void ChiefHarness::Obey(int, FakeWorker& w, const ChiefFence&, const BoundaryRequest& c) {
  w.requests[c.kind] = c.number;
}

void ChiefHarness::Obey(int index, FakeWorker& w, const ChiefFence& fence, const TakeSnapshot& command) {
  if (!(w.has_state && w.position == command.position)) {
    rejected = true;
    return Say(index, CommandRejected{"TakeSnapshot", fence, w.generation, "I stand elsewhere"});
  }
  TakeSnapshotAt(index, SnapshotCause::kAtRest);
}

void ChiefHarness::Obey(int, FakeWorker& w, const ChiefFence&, const AskShare& command) {
  if (!w.keeps_shares) Do(ShareStored{command.snapshot, command.share, command.shares});
}

void ChiefHarness::Obey(int, FakeWorker& w, const ChiefFence&, const SnapshotEnded& c) {
  w.snapshots.erase(c.snapshot);
}

void ChiefHarness::Obey(int index, FakeWorker&, const ChiefFence&, const Dismiss&) { Leave(index, 75); }

void ChiefHarness::Obey(int index, FakeWorker&, const ChiefFence&, const Done& command) {
  Leave(index, command.exit_code);
}

void ChiefHarness::Obey(int index, FakeWorker&, const ChiefFence&, const Shutdown& command) {
  Leave(index, command.exit_code);
}

void ChiefHarness::Obey(int index, FakeWorker&, const ChiefFence&, const Refused& command) {
  Leave(index, command.exit_code);
}

void ChiefHarness::Leave(int index, int code) {
  FakeWorker& w = workers_[index];
  w.dismissed = true;
  w.exit_code = code;
  w.generation = Generation();
  Say(index, Left{code, "told to"});
}

}  // namespace lockstep::chief
