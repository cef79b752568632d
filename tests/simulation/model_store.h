// What one process of a chief does with the model of its storage. A write takes effect at one instant, some time after
// it was ordered; writes run in parallel.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_MODEL_STORE_H_
#define LOCKSTEP_TESTS_SIMULATION_MODEL_STORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/simulation/disk.h"
#include "tests/simulation/model_disk.h"
#include "tests/simulation/world.h"

namespace lockstep::simulation {

class Cluster;

class ModelStore final : public ChiefStore {
 public:
  // Neither is owned.
  ModelStore(Cluster* cluster, ModelDisk* disk, ProcessId process)
      : cluster_(cluster), disk_(disk), process_(process) {}

  void TakeOver(std::function<void(absl::StatusOr<TakenOver>)> done) override;
  void LookForNewer(Done done) override;
  void StorePlan(const chief::StorePlan& order, Done done) override;
  void StoreDrains(const std::vector<chief::Drain>& drains, Done done) override;
  void OpenSave(const SnapshotId& id, uint32_t shares, Done failed) override;
  void AbandonSave(const SnapshotId& id) override { saves_.erase(id); }
  void TakeShare(const IncomingShare& share, Done done) override;
  void FinishShares(const chief::StoreManifest& order, std::function<void(absl::StatusOr<Digest>)> done) override;
  void Publish(const SnapshotId& id, Done done) override;
  void Amend(const chief::AmendManifest& order, Done done) override;
  void Repair(const chief::RecordRepair& order,
              std::function<void(absl::StatusOr<chief::RepairRecorded>)> done) override;
  void Read(const SnapshotId& id, uint32_t readers, std::function<void(std::optional<ReplicaState>)> done) override;
  void End(int code, std::function<void(int)> done) override;
  void Die() override {}

 private:
  struct Save {
    uint32_t shares = 0;
    std::map<uint32_t, ReplicaState> received;
  };

  World& world() const;
  void After(absl::Duration delay, std::function<void()> action) { world().After(process_, delay, std::move(action)); }
  // Runs `action` after the delay of a write, or of its consequence.
  void Later(std::function<void()> action) { disk_->Later(world(), process_, std::move(action)); }
  // Runs the next part of a start, or starts over a second later if the disk refuses.
  void Continue(void (ModelStore::*part)());
  void Claim();
  void Stage();
  void Fence();
  void Recover();
  TakenOver FindAll() const;
  // OK, or why the disk refuses this write.
  absl::Status Check(DiskWrite write);
  absl::Status CheckTerm() const;
  void SetAside(const chief::RecordRepair& order,
                const std::function<void(absl::StatusOr<chief::RepairRecorded>)>& done);

  Cluster* cluster_;
  ModelDisk* disk_;
  const ProcessId process_;
  Term term_ = 0;
  std::function<void(absl::StatusOr<TakenOver>)> taken_over_;
  std::map<SnapshotId, Save> saves_;
  std::map<SnapshotId, Manifest> manifests_;  // stored in staging, not yet published
  uint64_t drain_writes_ = 0;                 // numbered in the order in which they were ordered
  uint64_t drains_written_ = 0;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_MODEL_STORE_H_
