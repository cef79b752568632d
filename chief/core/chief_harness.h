// A test harness: a coordinator with fake workers and a fake storage that behave correctly unless a test switches part
// of them off. A `mute` worker answers nothing, one that is not `connected` hears nothing, and a storage that is not
// `storing` never answers. Time moves only by argument. All actions are recorded.
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

namespace lockstep::chief {

struct FakeWorker {
  Hello hello;
  Incarnation id;
  std::string name;
  SessionId session = 0;
  Term term = 0;
  bool connected = false;
  bool mute = false;    // receives commands, but answers none
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
  std::string digest_suffix;  // not empty: the bits of its state differ
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
  static constexpr uint32_t kNotTold = ~0u;  // a value for `expected`: the number of workers is not known
  struct Options {
    uint32_t workers = 0;  // workers that connect at once
    uint32_t min = 1;
    uint32_t max = 8;
    uint32_t expected = 0;  // 0: `workers`
    uint64_t end_step = 1000;
    Term term = 1;
    uint64_t checkpoint_step = 0;
    std::string plan = "";
    uint32_t logical_shards = 8;
    JobPolicy policy = {};  // fields not given above
    bool evaluated = true;  // whether the checkpoint is evaluated
    Lineage checkpoint_lineage = "lineage-1";
    std::vector<Drain> drains = {};
  };

  explicit ChiefHarness(Options options);

  FakeWorker& worker(int index) {
    FakeWorker& worker = workers_[index];
    if (worker.id.IsNone()) NewProcess(index);
    return worker;
  }
  // A fresh process in the place of worker `index`.
  FakeWorker& NewProcess(int index);
  // Opens a session and sends the Hello that fits the worker's state.
  void Connect(int index);
  void Reset(int index, const std::string& reason = "reset");
  void Kill(int index) {
    Reset(index, "connection reset by peer");
    NewProcess(index);
  }
  void Say(int index, WorkerMessage message);
  std::vector<int> Members() {
    std::vector<int> list;
    for (auto& [index, w] : workers_) {
      if (!w.generation.IsNone() && w.connected) list.push_back(index);
    }
    return list;
  }
  // All members apply and report every step up to `step`; at the job's last step they take the last snapshot.
  void StepTo(uint64_t step) {
    for (int index : Members()) Apply(index, step);
    if (step == config_.policy.training.end_step) TakeSnapshots(SnapshotCause::kEnd);
  }
  void Apply(int index, uint64_t step);
  void Audit(int index);
  void TakeSnapshots(SnapshotCause cause) {
    for (int index : Members()) TakeSnapshotAt(index, cause);
  }
  void TakeSnapshotAt(int index, SnapshotCause cause);
  void MeetAtBoundary() {
    for (int index : Members()) ComeToBoundary(index);
  }
  void ComeToBoundary(int index);
  Digest DigestOf(const FakeWorker& w) const { return absl::StrCat("digest-of-", w.position.step, w.digest_suffix); }
  // ---- time: passes in ticks of 500 ms, with heartbeats of every connected worker that is `beating`
  void Advance(absl::Duration duration);
  void Pause(absl::Duration duration) { now_ += duration; }  // time in which the chief's process does not run
  absl::Time now() const { return now_; }
  absl::Time NextDeadline() const { return core_.NextDeadline(); }

  // ---- events and actions
  void Do(const Event& event);
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

  bool rejected = false;             // a worker rejected a TakeSnapshot
  bool storing = true;               // the storage answers
  std::string storage_error;         // not empty: the storage refuses saves, for this reason
  bool storage_may_pass = true;      // whether it says that a later attempt may succeed
  std::string recomputed_suffix;     // not empty: the digest computed from the shards differs
  std::function<bool(int)> on_form;  // called for each Form; returns true if the test answered it

 private:
  static CoordinatorConfig MakeConfig(const Options& options);

  template <typename T>
  void Carry(const T&) {}
  void Carry(const StorePlan& action) { DoIfStoring(PlanStored{action.plan_hash}); }
  void Carry(const StoreManifest& action);
  void Carry(const PublishCommit& action) { DoIfStoring(Published{action.snapshot}); }
  void Carry(const AmendManifest& action) { DoIfStoring(Published{action.snapshot}); }
  void DoIfStoring(const Event& event) {
    if (storing) Do(event);
  }
  void Carry(const CloseSession& action);
  void Carry(const SendToAll& action);
  void Carry(const Send& action);

  template <typename T>
  void Obey(int, FakeWorker&, const ChiefFence&, const T&) {}
  void Obey(int index, FakeWorker& w, const ChiefFence&, const Welcome&);
  void Obey(int index, FakeWorker& w, const ChiefFence&, const MakePlan&);
  void Obey(int index, FakeWorker& w, const ChiefFence&, const Prepare& command);
  void Obey(int index, FakeWorker& w, const ChiefFence&, const TestPeers& command);
  void Obey(int index, FakeWorker& w, const ChiefFence& fence, const Form& command);
  void Obey(int index, FakeWorker& w, const ChiefFence& fence, const Verdict&);
  void Obey(int, FakeWorker& w, const ChiefFence&, const BoundaryRequest& c);
  void Obey(int index, FakeWorker& w, const ChiefFence& fence, const TakeSnapshot& command);
  void Obey(int, FakeWorker& w, const ChiefFence&, const AskShare& command);
  void Obey(int, FakeWorker& w, const ChiefFence&, const SnapshotEnded& c);
  void Obey(int, FakeWorker& w, const ChiefFence&, const StatesDiffer& c) { w.hello.differ = c; }
  void Obey(int index, FakeWorker&, const ChiefFence&, const Dismiss&);
  void Obey(int index, FakeWorker&, const ChiefFence&, const Done& command);
  void Obey(int index, FakeWorker&, const ChiefFence&, const Shutdown& command);
  void Obey(int index, FakeWorker&, const ChiefFence&, const Refused& command);
  void Leave(int index, int code);
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
