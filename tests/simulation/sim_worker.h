// One simulated worker process: the real session core over simulated computing, collectives and network.
//
// Threading: thread-compatible; owned by Cluster.
#ifndef LOCKSTEP_TESTS_SIMULATION_SIM_WORKER_H_
#define LOCKSTEP_TESTS_SIMULATION_SIM_WORKER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/cluster.h"
#include "tests/simulation/fabric.h"
#include "tests/simulation/network.h"
#include "tests/simulation/replica.h"
#include "tests/simulation/world.h"
#include "worker/session/session_core.h"

namespace lockstep::simulation {

class SimWorker {
 public:
  SimWorker(Cluster* cluster, int slot, ProcessId process, Incarnation incarnation);

  ProcessId process() const { return process_; }
  int slot() const { return slot_; }
  const std::string& name() const { return name_; }
  Incarnation incarnation() const { return incarnation_; }
  const worker::SessionCore& core() const { return core_; }

  void Start();
  void Terminate(absl::Duration grace);  // SIGTERM
  // Makes its computing not end before `when`; its session and its heartbeats go on.
  void HangUntil(absl::Time when) { hangs_until_ = when; }
  // Makes it unable to listen for peers before `when`.
  void NoPeersUntil(absl::Time when) { no_peers_until_ = when; }
  // Makes the next preparation, or the making of the plan, fail.
  void FailToPrepare(PrepareProblem problem) { prepare_problem_ = problem; }
  // Flips a bit of its state, if it is a member that steps with others.
  void FlipBit(Random& random);
  // Whether its state descends from a flip in this replica, or in one from which it received its state.
  bool odd() const { return odd_; }
  const ReplicaState& state() const { return state_; }
  bool has_state() const { return has_state_; }
  const Lineage& lineage() const { return lineage_; }
  // Makes it report an error of its own and end with 70.
  void BreakDown();
  // Whether it does its part, as far as that depends on itself.
  bool sound() const { return !terminated_ && !prepare_problem_.has_value() && WorksNow(); }
  // Empty if something that happened to this process explains this exit code; otherwise why nothing does.
  std::string WhyNotExit(int exit_code) const;
  // Called inside this process when a command arrives on one of its connections.
  void Receive(ConnectionId connection, ChiefFence fence, ChiefCommand command);
  // The chief announced a handover on this connection.
  void HandedOver(ConnectionId connection) { handed_over_by_ = connection; }

 private:
  World& world() const { return *cluster_->world; }
  Fabric& fabric() const { return *cluster_->fabric; }
  void Step(const worker::Event& event);
  void ScheduleTick();
  void After(absl::Duration delay, std::function<void()> action) { world().After(process_, delay, std::move(action)); }
  void Trace(const std::string& what) const;

  void Perform(const worker::Connect& action);
  void Perform(const worker::Disconnect& action);
  void Perform(const worker::Send& action);
  void Perform(const worker::SetPhase& action);
  void Perform(const worker::MakeKernelPlan& action);
  void Perform(const worker::PrepareReplica& action);
  void Perform(const worker::TestConnections& action);
  void Perform(const worker::FormCommunicator& action);
  void Perform(const worker::DeliverStore& action);
  void Perform(const worker::SyncState& action);
  void Perform(const worker::RunStep& action);
  void Perform(const worker::RunSlice& action);
  void Perform(const worker::WriteSample& action);
  void Perform(const worker::CancelSample&) {}
  void Perform(const worker::AbortCollectives& action);
  void Perform(const worker::StopComputing& action);
  void Perform(const worker::ComputeDigest& action);
  void Perform(const worker::TakeUpKept& action);
  void Perform(const worker::DropKept& action) { kept_.erase(action.copy); }
  void Perform(const worker::ReleaseMemory&) {}
  void Perform(const worker::TakeSnapshot& action);
  void Perform(const worker::UploadShare& action);
  void Perform(const worker::DropSnapshot& action);
  void Perform(const worker::Announce& action);
  void Perform(const worker::Exit& action);

  bool WorksNow() const { return world().now() >= hangs_until_ && world().now() >= no_peers_until_; }
  // Runs `action` after `time` of computing.
  void Compute(absl::Duration time, std::function<void()> action);
  void WaitForHang(std::function<void()> action);
  void KeepAlive();
  void ConnectionLost(const std::string& reason);
  void Heartbeat();
  Oracle::Seat Seat() const { return {generation_, rank_, size_}; }
  GroupKey Key() const { return {generation_.term, generation_.counter}; }
  void MaybeConnectGroup();
  // The member that the communicator blames for its end; none if it names nobody.
  Incarnation Suspect() const;
  // If preparing is to fail, reports that to the core and returns true.
  bool CannotPrepare();
  // Begins a piece of work for `generation`; one at a time.
  bool Begin(const Generation& generation, const char* what);
  void End();
  void MaybeStopped();
  void Failed(const Generation& generation, const absl::Status& status, bool state_void);
  void Exchange(const Generation& generation, const std::string& what, Contribution mine, bool receives,
                std::function<void(const Gathered&)> then);
  // Outer nullopt: no answer yet; inner nullopt: there is no such state.
  using FetchAnswer = std::optional<std::optional<ReplicaState>>;
  void FetchShare(const worker::SyncState& action);
  void AwaitShare(const worker::SyncState& action, const std::shared_ptr<FetchAnswer>& answer);
  void TakeState(const worker::SyncState& action, const ReplicaState& state, const EvaluationProgress& progress);
  void SetOdd(bool odd);
  void ExpectFound();
  void Reduced(const worker::RunStep& action, const Gathered& gathered);

  Cluster* cluster_;
  const int slot_;
  const ProcessId process_;
  const std::string name_;
  const Incarnation incarnation_;
  worker::SessionCore core_;
  absl::Time tick_at_ = absl::InfiniteFuture();

  std::optional<ConnectionId> connection_;
  std::optional<ConnectionId> handed_over_by_;
  bool connected_ = false;
  bool welcome_ = false;                              // by the chief of the connection
  absl::Time alone_since_;                            // since when no chief has welcomed it; initially its start
  absl::Time silent_since_ = absl::InfiniteFuture();  // since when nothing gets through on the session
  SimChief* chief_ = nullptr;                         // at the other end; may be dead
  std::optional<worker::SetPhase> phase_;
  uint64_t progress_ = 0;

  bool has_state_ = false;
  ReplicaState state_;
  Lineage lineage_;
  bool odd_ = false;
  int64_t hit_at_ = 0;  // the step of its newest flip
  int times_odd_ = 0;   // how often odd_ became true
  std::map<SnapshotId, ReplicaState> snapshots_;
  struct Copy {
    ReplicaState state;
    bool odd = false;
  };
  std::map<SnapshotId, Copy> kept_;  // of audited states

  // The communicator.
  Generation generation_;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  std::vector<Member> members_;
  std::set<std::string> store_;
  bool group_entered_ = false;
  bool group_aborted_ = false;

  std::optional<Generation> busy_;
  std::string busy_with_;
  bool waits_for_peer_ = false;
  std::optional<Generation> stop_;
  absl::Time stop_since_;
  bool state_void_ = false;
  uint64_t uploads_ = 0;
  std::set<uint64_t> pending_uploads_;

  // Faults and commands that it received.
  bool terminated_ = false;
  bool broke_down_ = false;
  bool refused_to_prepare_ = false;
  std::optional<int> told_to_end_;  // the code that a chief sent
  std::optional<int> refused_with_;
  std::optional<PrepareProblem> prepare_problem_;
  absl::Time hangs_until_ = absl::InfinitePast();
  absl::Time no_peers_until_ = absl::InfinitePast();
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_SIM_WORKER_H_
