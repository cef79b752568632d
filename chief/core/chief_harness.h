// A coordinator with workers and a storage that answer as honest ones do, for tests. Time moves only by argument;
// everything the core decided is kept and can be asked for. What a test wants to go wrong it switches off: a worker
// that is `mute` answers nothing, one that is not `connected` hears nothing, a storage that is not `storing` stays
// silent.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_CHIEF_CORE_CHIEF_HARNESS_H_
#define LOCKSTEP_CHIEF_CORE_CHIEF_HARNESS_H_

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/core/coordinator.h"
#include "common/protocol/member_list.h"
#include "common/protocol/recording.h"

namespace lockstep::chief {

struct FakeWorker {
  Hello hello;
  Incarnation id;
  std::string name;
  SessionId session = 0;
  Term term = 0;
  bool connected = false;
  bool mute = false;    // hears, but does not answer
  bool tests = true;    // answers TestPeers
  bool beating = true;  // heartbeats go on
  uint64_t progress = 0;
  Heartbeat::Phase phase = Heartbeat::Phase::kWaitingForPeer;
  bool leaving = false;
  bool dismissed = false;  // Dismiss, Done, Refused or Shutdown came
  int exit_code = -1;
  bool has_state = false;
  Lineage lineage;
  Position position;
  std::string digest_suffix;  // not empty: its bits differ
  Generation generation;      // none: at rest
  std::vector<Member> members;
  std::map<RequestKind, uint64_t> requests;
  std::set<SnapshotId> snapshots;
  std::vector<KeptState> kept;
  std::set<std::string> unreachable;  // addresses
  Ready ready{"plan-1", "data-1", absl::ZeroDuration(), 100};
  bool can_run = true, cannot_run_its_own = false, keeps_shares = false;
};

class ChiefHarness {
 public:
  static constexpr uint32_t kNotTold = ~0u;  // as `expected`: nobody said how many
  struct Options {
    uint32_t workers = 0;  // that connect at once
    uint32_t min = 1;
    uint32_t max = 8;
    uint32_t expected = 0;  // 0: `workers`
    uint64_t end_step = 1000;
    Term term = 1;
    uint64_t checkpoint_step = 0;
    std::string plan = "";
    uint32_t logical_shards = 8;
    JobPolicy policy = {};  // the rest
    bool evaluated = true;  // the checkpoint
    Lineage checkpoint_lineage = "lineage-1";
    std::vector<Drain> drains = {};
  };

  explicit ChiefHarness(Options options) : config_(MakeConfig(options)), core_(config_) {
    record_ = RecordConfig(config_);
    Do(Tick{});
    for (uint32_t i = 0; i < options.workers; ++i) Connect(i);
  }

  FakeWorker& worker(int index) {
    FakeWorker& worker = workers_[index];
    if (worker.id.IsNone()) NewProcess(index);
    return worker;
  }
  // A fresh process in the place of worker `index`.
  FakeWorker& NewProcess(int index) {
    workers_[index] = FakeWorker();
    FakeWorker& worker = workers_[index];
    worker.id = Incarnation{7, ++processes_};
    worker.hello.preferred_name = absl::StrCat("worker-", index);
    worker.hello.host = absl::StrCat("host-", index);
    worker.hello.peer_address = absl::StrCat("10.0.0.", index, ":", processes_);
    return worker;
  }
  // Opens a session and says Hello with what the worker is.
  void Connect(int index) {
    FakeWorker& w = worker(index);
    w.session = ++sessions_;
    w.connected = true;
    Hello hello = w.hello;
    hello.has_state = w.has_state;
    hello.lineage = w.lineage;
    hello.position = w.position;
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
  void Reset(int index, const std::string& reason = "reset") {
    FakeWorker& w = worker(index);
    w.connected = false;
    Do(SessionClosed{w.session, reason});
  }
  void Kill(int index) {
    Reset(index, "connection reset by peer");
    NewProcess(index);
  }
  void Say(int index, WorkerMessage message) {
    FakeWorker& w = worker(index);
    Do(FromWorker{w.session, WorkerFence{config_.policy.job, w.term, w.id}, std::move(message)});
  }
  std::vector<int> Members() {
    std::vector<int> list;
    for (auto& [index, w] : workers_) {
      if (!w.generation.IsNone() && w.connected) list.push_back(index);
    }
    return list;
  }
  // All members apply and report every step up to `step`; at the end they take the last snapshot.
  void StepTo(uint64_t step) {
    for (int index : Members()) Apply(index, step);
    if (step == config_.policy.training.end_step) TakeSnapshots(SnapshotCause::kEnd);
  }
  void Apply(int index, uint64_t step) {
    FakeWorker& w = worker(index);
    w.position = Position{step, 0};
    Report report{w.generation, w.lineage, w.position, {}, {}, {}};
    if (!w.members.empty() && w.members[0].incarnation == w.id) report.records = {StepRecord{step, 0.5}};
    if (w.connected) Say(index, report);
  }
  void Audit(int index) {
    FakeWorker& w = worker(index);
    Say(index, Report{w.generation, w.lineage, w.position, {}, {{w.position, DigestOf(w)}}, {}});
  }
  void TakeSnapshots(SnapshotCause cause) {
    for (int index : Members()) TakeSnapshotAt(index, cause);
  }
  void TakeSnapshotAt(int index, SnapshotCause cause) {
    FakeWorker& w = worker(index);
    const SnapshotId snapshot{w.lineage, w.position.step, DigestOf(w)};
    w.snapshots.insert(snapshot);
    Say(index, SnapshotTaken{w.generation, snapshot, cause});
  }
  void MeetAtBoundary() {
    for (int index : Members()) ComeToBoundary(index);
  }
  void ComeToBoundary(int index) {
    FakeWorker& w = worker(index);
    const AtBoundary message{w.generation, w.lineage, w.position, "", w.leaving, w.kept};
    w.generation = Generation();
    Say(index, message);
  }
  Digest DigestOf(const FakeWorker& w) const { return absl::StrCat("digest-of-", w.position.step, w.digest_suffix); }
  // ---- time: it passes in ticks of 500 ms; every connected worker that beats is heard
  void Advance(absl::Duration duration) {
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
  void Pause(absl::Duration duration) { now_ += duration; }  // the chief's process does not run
  absl::Time now() const { return now_; }
  absl::Time NextDeadline() const { return core_.NextDeadline(); }

  // ---- events and actions
  void Do(const Event& event) {
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
  const std::vector<Action>& actions() const { return actions_; }
  template <typename T>
  std::vector<T> All() const {
    std::vector<T> list;
    for (const Action& action : actions_) {
      if (const T* found = std::get_if<T>(&action)) list.push_back(*found);
    }
    return list;
  }
  template <typename T>
  size_t Count() const {
    return All<T>().size();
  }
  // The newest action of this type; a default one when there is none.
  template <typename T>
  T Last() const {
    const std::vector<T> list = All<T>();
    return list.empty() ? T() : list.back();
  }
  // Commands of this type sent to worker `index`, on any of its sessions.
  template <typename T>
  std::vector<T> Commands(int index) {
    std::vector<T> list;
    for (const Send& send : sent_[worker(index).id]) {
      if (const T* found = std::get_if<T>(&send.command)) list.push_back(*found);
    }
    return list;
  }
  template <typename T>
  T LastCommand(int index) {
    const std::vector<T> list = Commands<T>(index);
    return list.empty() ? T() : list.back();
  }
  std::string Said() const {
    std::string text;
    for (const Announce& line : All<Announce>()) absl::StrAppend(&text, line.text, "\n");
    return text;
  }
  void Forget() {
    actions_.clear();
    sent_.clear();
  }
  bool ended() const { return Count<Exit>() != 0; }
  Phase phase() { return core_.View().phase; }
  CoordinatorView View() { return core_.View(); }
  const CoordinatorConfig& config() const { return config_; }
  const std::string& record() const { return record_; }

  bool rejected = false;             // a TakeSnapshot did not fit
  bool storing = true;               // the storage answers
  std::string storage_error;         // not empty: it refuses saves
  bool storage_may_pass = true;      // … for a while
  std::string recomputed_suffix;     // the digest of the shards differs
  std::function<bool(int)> on_form;  // true: it answered Form itself

 private:
  static CoordinatorConfig MakeConfig(const Options& options) {
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

  template <typename T>
  void Carry(const T&) {}
  void Carry(const StorePlan& action) { DoIfStoring(PlanStored{action.plan_hash}); }
  void Carry(const StoreManifest& action) {
    if (!storing) return;
    if (!storage_error.empty()) return Do(StorageFailed{action.snapshot, storage_error, storage_may_pass});
    Do(ManifestStored{action.snapshot, action.snapshot.digest + recomputed_suffix});
  }
  void Carry(const PublishCommit& action) { DoIfStoring(Published{action.snapshot}); }
  void Carry(const AmendManifest& action) { DoIfStoring(Published{action.snapshot}); }
  void DoIfStoring(const Event& event) {
    if (storing) Do(event);
  }
  void Carry(const CloseSession& action) {
    for (auto& [index, w] : workers_) {
      if (w.session == action.session && w.connected) {
        w.connected = false;
        Do(SessionClosed{action.session, "closed by the chief"});
      }
    }
  }
  void Carry(const SendToAll& action) {
    for (const SessionId session : action.sessions) Carry(Send{session, action.fence, action.command, action.reason});
  }
  void Carry(const Send& action) {
    for (auto& [index, w] : workers_) {
      if (w.session != action.session || !w.connected) continue;
      sent_[w.id].push_back(action);
      if (std::holds_alternative<Welcome>(action.command)) {
        w.term = action.fence.term;
        w.name = std::get<Welcome>(action.command).name;
      }
      if (!w.mute) {
        std::visit([&, i = index](const auto& command) { Obey(i, workers_[i], action.fence, command); },
                   action.command);
      }
      return;
    }
  }

  template <typename T>
  void Obey(int, FakeWorker&, const ChiefFence&, const T&) {}
  void Obey(int index, FakeWorker& w, const ChiefFence&, const Welcome&) {
    for (const SnapshotId& snapshot : std::set<SnapshotId>(w.snapshots)) {
      Say(index, SnapshotTaken{w.generation, snapshot, SnapshotCause::kDue});
    }
  }
  void Obey(int index, FakeWorker& w, const ChiefFence&, const MakePlan&) {
    w.can_run = !w.cannot_run_its_own;
    Say(index, PlanMade{w.ready.plan_hash, "bytes", w.ready.data_digest});
  }
  void Obey(int index, FakeWorker& w, const ChiefFence&, const Prepare& command) {
    if (!w.can_run) return Say(index, PrepareFailed{PrepareProblem::kCannotRun, "no AVX-512 here"});
    w.ready.plan_hash = command.plan_hash;
    w.ready.settings = command.settings;
    Say(index, w.ready);
  }
  void Obey(int index, FakeWorker& w, const ChiefFence&, const TestPeers& command) {
    if (!w.tests) return;
    PeersTested answer{command.round, {}, {}, ""};
    for (const Member& peer : command.peers) {
      const bool fails = w.unreachable.count(peer.name) != 0;
      (fails ? answer.failed : answer.reached).push_back(peer.incarnation);
      if (fails) answer.message = "connection refused";
    }
    Say(index, answer);
  }
  void Obey(int index, FakeWorker& w, const ChiefFence& fence, const Form& command) {
    w.generation = fence.generation;
    w.members = command.members;
    w.has_state = true;
    w.lineage = command.lineage;
    w.position = command.position;
    w.requests.clear();
    if (on_form && on_form(index)) return;
    Say(index, Formed{fence.generation, w.position, DigestOf(w)});
  }
  void Obey(int index, FakeWorker& w, const ChiefFence& fence, const Verdict&) {
    w.generation = Generation();
    Say(index, VerdictAck{fence.generation, w.has_state, w.lineage, w.position, "", w.kept});
  }
  void Obey(int, FakeWorker& w, const ChiefFence&, const BoundaryRequest& c) { w.requests[c.kind] = c.number; }
  void Obey(int index, FakeWorker& w, const ChiefFence& fence, const TakeSnapshot& command) {
    if (!(w.has_state && w.position == command.position)) {
      rejected = true;
      return Say(index, CommandRejected{"TakeSnapshot", fence, w.generation, "I stand elsewhere"});
    }
    TakeSnapshotAt(index, SnapshotCause::kAtRest);
  }
  void Obey(int, FakeWorker& w, const ChiefFence&, const AskShare& command) {
    if (!w.keeps_shares) Do(ShardStored{command.snapshot, command.share, command.shares});
  }
  void Obey(int, FakeWorker& w, const ChiefFence&, const SnapshotEnded& c) { w.snapshots.erase(c.snapshot); }
  void Obey(int index, FakeWorker&, const ChiefFence&, const Dismiss&) { Leave(index, 75); }
  void Obey(int index, FakeWorker&, const ChiefFence&, const Done& command) { Leave(index, command.exit_code); }
  void Obey(int index, FakeWorker&, const ChiefFence&, const Shutdown& command) { Leave(index, command.exit_code); }
  void Obey(int index, FakeWorker&, const ChiefFence&, const Refused& command) { Leave(index, command.exit_code); }
  void Leave(int index, int code) {
    FakeWorker& w = workers_[index];
    w.dismissed = true;
    w.exit_code = code;
    w.generation = Generation();
    Say(index, Left{code, "told to"});
  }
  CoordinatorConfig config_;
  Coordinator core_;
  absl::Time now_ = absl::FromUnixSeconds(1000000);
  std::map<int, FakeWorker> workers_;
  uint64_t processes_ = 0;
  SessionId sessions_ = 0;
  std::deque<Event> queue_;
  bool running_ = false;
  std::vector<Action> actions_;
  std::map<Incarnation, std::vector<Send>> sent_;
  std::string record_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_CHIEF_HARNESS_H_
