// A model of the chief's durable state: claimed terms, staging directories, published checkpoints, the lists of
// accepted manifests, the kernel plan.
//
// What is here survives the death of a process. A published checkpoint is visible at once but survives a crash of the
// machine only after its directory was synced.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_MODEL_DISK_H_
#define LOCKSTEP_TESTS_SIMULATION_MODEL_DISK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chief/core/policy.h"
#include "common/protocol/evaluation.h"
#include "common/protocol/ids.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/random.h"
#include "tests/simulation/replica.h"

namespace lockstep::simulation {

class Cluster;

struct Manifest : StoredCheckpoint {
  Term term = 0;
  std::string plan_hash;
  uint64_t audit_floor = ~uint64_t{0};  // for retention, when it is published
  absl::Duration trained_for;
  bool synced = false;
};

struct StoredPlan {
  std::string hash;
  std::string plan;
  Digest data_digest;
};

class ModelDisk : public Disk {
 public:
  // `cluster` may be null where no chief lives on it.
  ModelDisk(Cluster* cluster, Oracle* oracle) : cluster_(cluster), oracle_(oracle) {}

  std::unique_ptr<ChiefStore> NewLife(ProcessId process) override;
  void MachineCrash(Random& random) override;
  bool stops_halfway() const override { return false; }
  Digest DigestOf(const ReplicaState& state) const override { return DigestText(state); }
  Term highest_claim() const override { return highest_claim_; }
  std::optional<StoredCheckpoint> FindNewest() const override;
  std::optional<StoredCheckpoint> FindAt(uint64_t step) const override;
  std::vector<chief::Drain> FindDrains() const override { return drains; }

  // The steps of a chief's start, in this order; a chief may die or sleep between any two.
  Term ClaimTerm() { return ++highest_claim_; }
  void CreateStaging(Term term) { staging_.insert(term); }
  void FenceOlder(Term term);
  // Stores the list of what `term` accepts and returns it, newest step first. Sets aside what an older term
  // published after the newest list was made.
  std::vector<Manifest> Scan(Term term);

  bool HasStaging(Term term) const { return staging_.count(term) > 0; }

  enum class PublishResult { kOk, kFenced };
  PublishResult Publish(Term term, Manifest manifest);
  void SyncPublished(const SnapshotId& snapshot);
  // Puts another manifest in the place of a published one, durably.
  void Amend(const SnapshotId& snapshot, const EvaluationLedger& ledger);
  // Leaves the newest `keep` and what a way back would need. `ledger`, of a job that keeps its best state: the one of
  // its best step stays too, the best as the newest audited one knows it, and the first one after that.
  // The same for the newest audited one up to `audit_floor`.
  void Retain(size_t keep, const EvaluationLedger* ledger, uint64_t audit_floor = ~uint64_t{0});
  uint64_t OldestAudited() const;
  // Of a step up to `up_to`; null: there is none.
  const Manifest* NewestAudited(uint64_t up_to = ~uint64_t{0}) const;

  std::optional<ReplicaState> Load(const SnapshotId& snapshot) const;
  // The newest visible checkpoint that is not set aside.
  const Manifest* Newest() const;

  // ---- the way back after replicas differed
  // Makes it durable that the job goes on as `lineage`, which it may be already, from its newest audited checkpoint;
  // null where none is left. What is newer is set aside by SetAsideNewer or by the next Scan.
  const Manifest* BranchOff(const Lineage& lineage, uint64_t found_at, const std::vector<std::string>& hosts);
  // Returns the lowest step that is set aside; 0: none is.
  uint64_t SetAsideNewer();
  // Of the job; empty: as the job began.
  const Lineage& lineage() const { return lineage_; }
  const std::optional<chief::PastRepair>& repair() const { return repair_; }

  // Null when no checkpoint of that step stands there.
  const Manifest* At(uint64_t step) const;

  std::optional<StoredPlan> plan;
  std::vector<chief::Drain> drains;

 private:
  Cluster* cluster_;
  Oracle* oracle_;
  Term highest_claim_ = 0;
  std::set<Term> staging_;
  std::map<uint64_t, Manifest> checkpoints_;
  Term newest_scan_ = 0;
  Lineage lineage_;
  uint64_t branched_at_ = 0;
  std::optional<chief::PastRepair> repair_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_MODEL_DISK_H_
