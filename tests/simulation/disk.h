// The durable storage of a simulated job, and what one process of its chief does with it. There are two
// implementations: a model (model_disk.h), and the chief's own JobStore over a storage in memory
// (job_store/real_disk.h). The shell of the chief is the same for both.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_DISK_H_
#define LOCKSTEP_TESTS_SIMULATION_DISK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "chief/core/events.h"
#include "chief/core/policy.h"
#include "common/protocol/evaluation.h"
#include "common/protocol/ids.h"
#include "tests/simulation/random.h"
#include "tests/simulation/replica.h"
#include "tests/simulation/world.h"

namespace lockstep::simulation {

// A checkpoint as a reader finds it.
struct StoredCheckpoint {
  SnapshotId snapshot;
  bool audited = false;
  bool evaluated = true;
  EvaluationLedger ledger;
  ReplicaState state;
  bool set_aside = false;
};

// The kinds of writes of a chief.
enum class DiskWrite : uint8_t { kPlan, kOpen, kShare, kManifest, kPublish, kRepair, kDrains };
inline constexpr size_t kDiskWrites = static_cast<size_t>(DiskWrite::kDrains) + 1;

// What a chief finds when it takes over.
struct TakenOver {
  chief::RecoveredState recovered;
  Lineage lineage;  // of the job
};

// A share as it comes in.
struct IncomingShare {
  SnapshotId snapshot;
  uint32_t share = 0;
  uint32_t shares = 0;
  ReplicaState state;  // the state to which its bytes belong
  bool torn = false;   // the stream breaks
};

// What one process of a chief does with its storage. Each call ends by calling `done` inside the process, at once or
// later, and never after the process died. Codes as JobStore, except that Aborted always means that a newer chief has
// the job.
class ChiefStore {
 public:
  using Done = std::function<void(absl::Status)>;
  virtual ~ChiefStore() = default;

  virtual void TakeOver(std::function<void(absl::StatusOr<TakenOver>)> done) = 0;
  // OK unless a newer chief has the job. `done` receives the error of an outage too.
  virtual void LookForNewer(Done done) = 0;
  virtual void StorePlan(const chief::StorePlan& order, Done done) = 0;
  virtual void StoreDrains(const std::vector<chief::Drain>& drains, Done done) = 0;

  // `failed` is called only if opening fails.
  virtual void OpenSave(const SnapshotId& id, uint32_t shares, Done failed) = 0;
  virtual void AbandonSave(const SnapshotId& id) = 0;
  // FailedPrecondition: no such save is open. Cancelled: the stream broke. DataLoss: the sender's bytes are not those
  // of the snapshot.
  virtual void TakeShare(const IncomingShare& share, Done done) = 0;
  // Returns the digest of the stored state. FailedPrecondition: shares are missing. Cancelled: the save was given up.
  virtual void FinishShares(const chief::StoreManifest& order, std::function<void(absl::StatusOr<Digest>)> done) = 0;
  // REQUIRES: FinishShares returned OK.
  virtual void Publish(const SnapshotId& id, Done done) = 0;
  virtual void Amend(const chief::AmendManifest& order, Done done) = 0;
  virtual void Repair(const chief::RecordRepair& order,
                      std::function<void(absl::StatusOr<chief::RepairRecorded>)> done) = 0;
  // Reads a state for `readers` workers, each of which receives a share.
  virtual void Read(const SnapshotId& id, uint32_t readers, std::function<void(std::optional<ReplicaState>)> done) = 0;
  // Somebody asks this chief to pin, unpin or remove a checkpoint that the log names. The model has no such requests.
  virtual void ChangeByHand(Random&) {}
  // The chief ends with `code`; `done` receives the code with which it really ends: 76 if it was succeeded.
  virtual void End(int code, std::function<void(int)> done) = 0;

  // The process is dead and changes nothing any more.
  virtual void Die() = 0;
};

class Disk {
 public:
  virtual ~Disk() = default;

  virtual std::unique_ptr<ChiefStore> NewLife(ProcessId process) = 0;
  // The machine crashes: what was not synced may be lost.
  virtual void MachineCrash(Random& random) = 0;
  // Whether calls may stop halfway while other processes go on.
  virtual bool stops_halfway() const = 0;
  // The digest of a state, in the form that the cores use.
  virtual Digest DigestOf(const ReplicaState& state) const = 0;

  // ---- the view of a reader
  virtual Term highest_claim() const = 0;
  // The newest checkpoint that counts.
  virtual std::optional<StoredCheckpoint> FindNewest() const = 0;
  virtual std::optional<StoredCheckpoint> FindAt(uint64_t step) const = 0;
  virtual std::vector<chief::Drain> FindDrains() const = 0;

  // ---- faults
  // The kinds of writes of which the next one is refused.
  std::set<DiskWrite> refuses_once;
  size_t refused = 0;  // writes
  // The disk refuses every write: it is full, read-only or broken.
  bool refuses = false;
  // The disk answers no call before this instant; it may be set back to the past.
  absl::Time stalls_until = absl::InfinitePast();

  // Runs `action` inside the process when a call that begins now would be answered.
  void Later(World& world, ProcessId process, std::function<void()> action) const;

 private:
  void OnceItMoves(World& world, ProcessId process, std::function<void()> action) const;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_DISK_H_
