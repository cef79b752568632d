// A model of the chief's durable state: claimed terms, staging directories, published checkpoints, the lists of
// accepted manifests, the kernel plan.
//
// All of it survives the death of a process. A published checkpoint is visible at once, but survives a crash of the
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
  uint64_t audit_floor = ~uint64_t{0};  // for retention, at its publication
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
  // `cluster` may be null if no chief uses the disk.
  ModelDisk(Cluster* cluster, Oracle* oracle) : cluster_(cluster), oracle_(oracle) {}

  std::unique_ptr<ChiefStore> NewLife(ProcessId process) override;
  void MachineCrash(Random& random) override;
  bool stops_halfway() const override { return false; }
  Digest DigestOf(const ReplicaState& state) const override { return DigestText(state); }
  Term highest_claim() const override { return highest_claim_; }
  std::optional<StoredCheckpoint> FindNewest() const override;
  std::optional<StoredCheckpoint> FindAt(uint64_t step) const override;
  std::vector<chief::Drain> FindDrains() const override { return drains; }

  // The steps of a chief's start, in this order; the chief may die or pause between any two.
  Term ClaimTerm() { return ++highest_claim_; }
  void CreateStaging(Term term) { staging_.insert(term); }
  void FenceOlder(Term term);
  // Stores the list of checkpoints that `term` accepts and returns it, newest step first. Sets aside what an older term
  // published after the newest list was made.
  std::vector<Manifest> Scan(Term term);

  bool HasStaging(Term term) const { return staging_.count(term) > 0; }

  enum class PublishResult { kOk, kFenced };
  PublishResult Publish(Term term, Manifest manifest);
  void SyncPublished(const SnapshotId& snapshot);
  // Replaces a published manifest, durably.
  void Amend(const SnapshotId& snapshot, const EvaluationLedger& ledger);
  // Keeps the newest `keep` checkpoints and what a repair would need. `ledger`: of a job that keeps its best state; its
  // best step stays too, and also the best one by the ledger of the newest audited checkpoint, and the first one after
  // that; the same for the newest audited one up to `audit_floor`.
  void Retain(size_t keep, const EvaluationLedger* ledger, uint64_t audit_floor = ~uint64_t{0});
  uint64_t OldestAudited() const;
  // The newest audited checkpoint of a step up to `up_to`; null if there is none.
  const Manifest* NewestAudited(uint64_t up_to = ~uint64_t{0}) const;

  std::optional<ReplicaState> Load(const SnapshotId& snapshot) const;
  // The newest visible checkpoint that is not set aside.
  const Manifest* Newest() const;

  // ---- repairs after replicas differed
  // Records durably that the job continues as `lineage` (if it does not already) from its newest audited checkpoint,
  // which is returned; null if none is left. SetAsideNewer or the next Scan sets newer ones aside.
  const Manifest* BranchOff(const Lineage& lineage, uint64_t found_at, const std::vector<std::string>& hosts);
  // Sets newer checkpoints aside. Returns the lowest of their steps; 0: none.
  uint64_t SetAsideNewer();
  // The lineage of the job; empty: the original one.
  const Lineage& lineage() const { return lineage_; }
  const std::optional<chief::PastRepair>& repair() const { return repair_; }

  // The checkpoint of that step; null if there is none.
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
