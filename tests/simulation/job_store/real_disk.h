// The place in which the chief's own JobStore keeps the job: a directory or a bucket, in memory.
//
// The oracles' queries read it as any reader would: the newest record of the log, and the checkpoints that it names.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_JOB_STORE_REAL_DISK_H_
#define LOCKSTEP_TESTS_SIMULATION_JOB_STORE_REAL_DISK_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/checkpoint/manifest_store.h"
#include "chief/server/job_setup.h"
#include "common/job_place/job_place.h"
#include "common/object_store/memory_object_store.h"
#include "common/storage/memory/memory_storage.h"
#include "protos/commit_log.pb.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/job_store/operation_gate.h"
#include "tests/simulation/random.h"

namespace lockstep::simulation {

class RealDisk final : public Disk {
 public:
  // `cluster` is not owned. `seed` determines what fails beyond the faults of the schedule.
  RealDisk(Cluster* cluster, uint64_t seed);

  std::unique_ptr<ChiefStore> NewLife(ProcessId process) override;
  void MachineCrash(Random& random) override;
  bool stops_halfway() const override { return true; }
  Digest DigestOf(const ReplicaState& state) const override;
  Term highest_claim() const override;
  std::optional<StoredCheckpoint> FindNewest() const override;
  std::optional<StoredCheckpoint> FindAt(uint64_t step) const override;
  std::vector<chief::Drain> FindDrains() const override;

  // ---- for chief processes
  bool in_bucket() const { return in_bucket_; }
  // The place as one process sees it; `gate` outlives it.
  std::unique_ptr<JobPlace> Open(OperationGate& gate);
  // Sets the gate of the process whose call runs now; null: none.
  void Runs(OperationGate* gate) { running_ = gate; }
  const chief::JobSetup& setup() const { return setup_; }
  Random& random() { return random_; }
  // The number of calls, of 1,000, that stop halfway.
  int stops_per_mille() const { return stops_per_mille_; }

  // A chief took over: tells the oracle what follows from what it found.
  void TookOver(const TakenOver& found);
  // It is durable that the job continues as `lineage`, which this disk may know already, from `checkpoint`.
  void WentBack(const Lineage& lineage, const SnapshotId& checkpoint);
  // The storage reported to a chief that `id` is committed.
  void Committed(Term term, const SnapshotId& id, bool audited, const EvaluationLedger& ledger);

  // The steps of the checkpoints that the log names.
  std::vector<uint64_t> LiveSteps() const;
  // Somebody asks for a change of this checkpoint. Returns its number. Once a pin may end, nobody knows whether it is
  // pinned.
  uint64_t Changes(chief::CheckpointChange change, uint64_t step);
  // The storage reported to a chief that the change of this number is done.
  void Changed(Term term, chief::CheckpointChange change, uint64_t step, uint64_t number);

 private:
  CommitRecord NewestRecord() const;
  std::optional<StoredCheckpoint> Load(const LiveCheckpoint& live) const;
  void BeginJob();
  void BeforeParentSync(int64_t number);
  ObjectFault NextObjectFault();
  // Whether a repair can go back to a checkpoint after `step` that no chief was told of: its save failed after the
  // record was written.
  bool NamesAuditedAfter(const CommitRecord& record, uint64_t step) const;
  // Checks that the log names what a repair, the best state or a restart would need, and what is pinned.
  void CheckRetention(const SnapshotId& id, const EvaluationLedger& ledger) const;
  void CheckNeeded(const CommitRecord& record) const;
  void CheckLive(const CommitRecord& record, uint64_t step, const char* what) const;

  Cluster* cluster_;
  Random random_;
  const bool in_bucket_;
  const int stops_per_mille_;
  const int object_faults_per_mille_;  // of requests to the bucket
  mutable MemoryStorage directory_;
  mutable MemoryObjectStore bucket_;
  std::unique_ptr<JobPlace> place_;  // for readers
  chief::JobSetup setup_;
  OperationGate* running_ = nullptr;
  bool fault_planned_ = false;  // in directory_
  Lineage lineage_;
  Term newest_scan_ = 0;
  int64_t newest_found_ = -1;         // by that scan
  std::map<uint64_t, bool> commits_;  // of the job's history: by step, whether it is audited
  std::set<uint64_t> pinned_;         // steps of checkpoints that are pinned for certain
  uint64_t changes_ = 0;
  std::map<uint64_t, uint64_t> unpinned_;  // by step: the last change that may end a pin
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_JOB_STORE_REAL_DISK_H_
