// What one process of a chief does with its JobStore. Its calls run one after the other, as on the real storage thread,
// and each may stop before any operation while all others go on; if the process dies then, the call does nothing more.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_JOB_STORE_REAL_STORE_H_
#define LOCKSTEP_TESTS_SIMULATION_JOB_STORE_REAL_STORE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chief/checkpoint/manifest_store.h"
#include "chief/server/job_store.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/job_store/operation_gate.h"
#include "tests/simulation/job_store/real_disk.h"
#include "tests/simulation/job_store/storage_thread.h"
#include "tests/simulation/world.h"

namespace lockstep::simulation {

class RealStore final : public ChiefStore {
 public:
  // Neither is owned.
  RealStore(Cluster* cluster, RealDisk* disk, ProcessId process);
  ~RealStore() override { Die(); }

  void TakeOver(std::function<void(absl::StatusOr<TakenOver>)> done) override;
  void LookForNewer(Done done) override;
  void StorePlan(const chief::StorePlan& order, Done done) override;
  void StoreDrains(const std::vector<chief::Drain>& drains, Done done) override;
  void OpenSave(const SnapshotId& id, uint32_t shares, Done failed) override;
  void AbandonSave(const SnapshotId& id) override;
  void TakeShare(const IncomingShare& share, Done done) override;
  void FinishShares(const chief::StoreManifest& order, std::function<void(absl::StatusOr<Digest>)> done) override;
  void Publish(const SnapshotId& id, Done done) override;
  void Amend(const chief::AmendManifest& order, Done done) override;
  void Repair(const chief::RecordRepair& order,
              std::function<void(absl::StatusOr<chief::RepairRecorded>)> done) override;
  void Read(const SnapshotId& id, uint32_t readers, std::function<void(std::optional<ReplicaState>)> done) override;
  void ChangeByHand(Random& random) override;
  void End(int code, std::function<void(int)> done) override;
  void Die() override;

 private:
  struct Call {
    std::optional<DiskWrite> write;
    std::function<void()> run;   // blocks on the storage
    std::function<void()> done;  // inside the process, once it has run
  };

  World& world() const;
  void After(absl::Duration delay, std::function<void()> action) { world().After(process_, delay, std::move(action)); }
  // Runs `action` when a call may begin, or go on after a stop.
  void Later(std::function<void()> action) { disk_->Later(world(), process_, std::move(action)); }
  // Queues a call whose result is passed to `done`.
  template <typename Result>
  void Post(std::optional<DiskWrite> write, std::function<Result()> run, std::function<void(Result)> done);
  void Enqueue(Call call);
  void BeginNext();
  // Draws where the next call stops, and whether something fails in it.
  void DrawFaults();
  void Went(bool ended);

  absl::StatusOr<TakenOver> Take();
  absl::Status Receive(const IncomingShare& share, std::optional<uint64_t> wrong_bit);
  std::optional<ReplicaState> ReadState(const SnapshotId& id, uint32_t readers);
  void VerifyOlder();
  int64_t BestOf(const EvaluationLedger& ledger) const;
  chief::CommitInfo InfoOf(const chief::StoreManifest& order) const;

  Cluster* cluster_;
  RealDisk* disk_;
  const ProcessId process_;
  OperationGate gate_;
  StorageThread thread_;
  chief::JobSetup setup_;
  std::unique_ptr<chief::JobStore> store_;
  std::deque<Call> calls_;  // the first one is under way, or about to begin
  std::map<SnapshotId, chief::CommitInfo> infos_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_JOB_STORE_REAL_STORE_H_
