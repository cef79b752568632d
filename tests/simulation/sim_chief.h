// One simulated chief process: the real coordinator over a simulated network and disk.
//
// Threading: thread-compatible; owned by Cluster.
#ifndef LOCKSTEP_TESTS_SIMULATION_SIM_CHIEF_H_
#define LOCKSTEP_TESTS_SIMULATION_SIM_CHIEF_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "chief/core/coordinator.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/network.h"
#include "tests/simulation/world.h"

namespace lockstep::simulation {

class SimChief {
 public:
  SimChief(Cluster* cluster, ProcessId process)
      : cluster_(cluster), process_(process), store_(cluster->disk->NewLife(process)) {}

  ProcessId process() const { return process_; }
  Term term() const { return term_; }
  bool listening() const { return core_ != nullptr; }
  // The phase after the last event.
  chief::Phase phase() const { return phase_; }
  // Makes its loop hang: connections are accepted but not answered, until a watchdog ends the process.
  void Hang() { hung_ = true; }
  bool hung() const { return hung_; }

  // Takes the job over, then listens.
  void Start();
  // The process died, in whatever way.
  void Die() { store_->Die(); }
  // The following functions run inside this process.
  void Opened(ConnectionId connection, const Incarnation& worker);
  void Received(ConnectionId connection, const WorkerFence& fence, const WorkerMessage& message);
  void Reset(ConnectionId connection);
  void HeartbeatCame(const WorkerFence& fence, const Heartbeat& heartbeat);
  // `answer(ok)` also runs inside this process.
  void ShareCame(const IncomingShare& share, const Incarnation& sender, std::function<void(bool)> answer);
  // A worker reads the checkpoint that it restores; each of `readers` workers receives a share.
  void Read(const SnapshotId& id, uint32_t readers, std::function<void(std::optional<ReplicaState>)> done) {
    store_->Read(id, readers, std::move(done));
  }
  void ProcessEnded(const std::string& name, ProcessEnd end);
  // Sends a stop signal: the chief saves, then all processes end to be restarted (`whole`) or only the chief.
  void AskStop(bool whole);
  // `lockstep drain`. `target`: a worker's name or a host's.
  void AskDrain(const std::string& target, bool undo, absl::Duration within);
  void ChangeByHand(Random random) { store_->ChangeByHand(random); }
  // kKnown: this chief enforces the drain of `target`, or is about to store it; kStoredOnly: only its successor would.
  // REQUIRES: listening().
  enum class DrainStatus : uint8_t { kNone, kKnown, kStoredOnly };
  DrainStatus StatusOfDrain(const std::string& target);
  // Empty if something that happened to this process explains this exit code; otherwise why nothing does.
  std::string WhyNotExit(int exit_code) const;

 private:
  struct Session {
    ConnectionId connection = 0;
    Incarnation worker;
  };

  World& world() const { return *cluster_->world; }
  void After(absl::Duration delay, std::function<void()> action) { world().After(process_, delay, std::move(action)); }
  void Trace(const std::string& what) const;
  void Listen(const TakenOver& found);
  // Reports the failure of a write to the core.
  void Failed(const SnapshotId& snapshot, const absl::Status& status);
  void JudgeRefusal(const lockstep::Refused& refused, const Incarnation& incarnation);
  void Repaired(const chief::RecordRepair& order, const absl::StatusOr<chief::RepairRecorded>& repair);
  void WatchTerm();
  void Step(const chief::Event& event);
  void Take(const chief::Event& event);
  void ScheduleTick();

  void Perform(const chief::Send& action);
  void Perform(const chief::SendToAll& action);
  void Perform(const chief::CloseSession& action);
  void Perform(const chief::StorePlan& action);
  void Perform(const chief::OpenSave& action);
  void Perform(const chief::AbandonSave& action);
  void Perform(const chief::StoreManifest& action);
  void Perform(const chief::PublishCommit& action);
  void Perform(const chief::AmendManifest& action);
  void Perform(const chief::RecordRepair& action);
  void Perform(const chief::WentBack&) {}
  void Perform(const chief::StepsAgreed& action);
  void Perform(const chief::EvaluationDone& action);
  void Perform(const chief::RecordSample&) {}
  void Perform(const chief::RecordObservation&) {}
  void Perform(const chief::WorkerChanged& action);
  void Perform(const chief::WorkerCounters& action);
  void Perform(const chief::DrainDecided& action);
  void Perform(const chief::Announce& action);
  void Perform(const chief::Exit& action);
  void LeaveWorkers();

  Cluster* cluster_;
  const ProcessId process_;
  const std::unique_ptr<ChiefStore> store_;
  Term term_ = 0;
  Lineage lineage_;                          // the job's, as known to this chief
  std::optional<chief::PastRepair> repair_;  // the newest that it knows
  bool ending_ = false;
  std::unique_ptr<chief::Coordinator> core_;
  absl::Time tick_at_ = absl::InfiniteFuture();
  chief::SessionId next_session_ = 1;
  std::map<chief::SessionId, Session> sessions_;
  std::map<ConnectionId, chief::SessionId> by_connection_;
  std::set<SnapshotId> saves_;            // open
  std::set<SnapshotId> manifest_stored_;  // told to the core
  int damaged_ = 0;                       // its saves whose bytes were not what was announced
  int errors_ = 0;                        // errors that workers reported, and crash signals
  uint64_t drain_requests_ = 0;
  uint64_t drain_writes_ = 0;  // begun writes, which keep their order
  uint64_t drains_written_ = 0;
  bool repair_ends_ = false;  // replicas differed twice in a row, or after the end
  bool stop_asked_ = false;
  bool hung_ = false;
  chief::Phase phase_ = chief::Phase::kAdopting;
  absl::Time listens_since_;
  int64_t newest_told_ = -1;  // step of the newest checkpoint that the core knows

  // Every kBurstEvery events the core takes in kBurst of them before it decides, as if its queue had filled.
  static constexpr uint64_t kBurstEvery = 37;
  static constexpr uint64_t kBurst = 6;
  uint64_t taken_ = 0;
  uint64_t burst_left_ = 0;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_SIM_CHIEF_H_
