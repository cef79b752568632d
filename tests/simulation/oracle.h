// Checks what must hold in every schedule, while it runs.
//
//   * An applied step leaves the state of an undisturbed run at that step, and used each sample of the step once.
//   * A live replica never goes back within its lineage; a chief never forms a generation below a manifest that it
//     published or found.
//   * What was committed stays restorable; an older chief commits nothing once a newer one has scanned.
//   * Every rank of a generation starts it at the same position.
//   * The job ends where an undisturbed run ends, and with keep_best its best state is on the disk.
//   * Replicas are reported to differ only after a bit of one flipped, and the job goes back to a correct state.
//
// A bit that flips in a replica spoils its lineage: from that step on, other states of this lineage are excused, until
// the job continues under another lineage, which is judged like any other. They stay excused to the end only if nobody
// can detect the flip any more (docs/design/0011, not covered): the replica is gone and the remaining ones are equal,
// or every member was hit in the same way, so that all states that can be compared are equal.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_ORACLE_H_
#define LOCKSTEP_TESTS_SIMULATION_ORACLE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "common/protocol/ids.h"
#include "tests/simulation/replica.h"

namespace lockstep::simulation {

class Oracle {
 public:
  using DigestFunction = std::function<Digest(const ReplicaState&)>;
  Oracle(const TinyJob& job, const TrainingPolicy& policy, DigestFunction digest_of = DigestText)
      : job_(job), reference_(job, policy), digest_of_(std::move(digest_of)) {}

  // Records a violation. The first one counts; later ones are mostly its consequences.
  void Violation(std::string what);
  bool violated() const { return !violations_.empty(); }
  const std::vector<std::string>& violations() const { return violations_; }

  // A replica made the update that leads to `state`, with the gradients of these logical shards.
  void Applied(const std::string& who, const Lineage& lineage, const ReplicaState& state, std::vector<uint64_t> shards);
  // A replica replaced its state by that of a peer or a checkpoint (`had`: it had a state before).
  void Replaced(const std::string& who, const Lineage& lineage, bool had, const ReplicaState& before,
                const ReplicaState& after);
  // A rank entered a generation.
  void Started(const std::string& who, const Generation& generation, const Position& position);
  void CheckState(const std::string& who, const Lineage& lineage, const ReplicaState& state);
  // Checks the ledger of a state whose evaluation, if one was due, was completed.
  void CheckLedger(const std::string& who, const EvaluationLedger& ledger);
  // A manifest became visible; if not `accepted`, it will be set aside.
  void Published(Term term, const SnapshotId& snapshot, const Digest& digest, bool accepted);
  // A published manifest is durable, and its chief knows.
  void Committed(uint64_t step) {
    ++commits_;
    highest_committed_ = std::max(highest_committed_, static_cast<int64_t>(step));
  }
  int64_t commits() const { return commits_; }
  // A chief accepted its list of manifests; older chiefs may commit nothing from here on. `newest`: -1 for an empty
  // list.
  void Scanned(Term term, int64_t newest);

  // ---- bits that flip
  // A member of a generation.
  struct Seat {
    Generation generation;
    uint32_t rank = 0;
    uint32_t size = 0;  // of the generation
  };
  void Flipped(const Seat& seat, const Lineage& lineage, int64_t step);
  // A member computes the digest of its state, or takes a snapshot of it.
  void Digested(const Seat& seat, const Lineage& lineage, const ReplicaState& state);
  // The corrupted replica ended, or took another state, before the job went back.
  void FlipGone(const Lineage& lineage);
  // All members of a generation begin with `state`.
  void BeginAlike(const Lineage& lineage, const ReplicaState& state);
  // The chief is about to give up the states of `lineage`.
  void Differs(const Lineage& lineage, const std::string& reason);
  // It is durable that the job continues as `lineage` from `checkpoint`, which is of the lineage `from`.
  void WentBack(const Lineage& from, const Lineage& lineage, const ReplicaState& checkpoint);
  // A replica took up a copy of a state of the lineage `from`, and begins `lineage` with it.
  void TookUp(const std::string& who, const Lineage& from, const Lineage& lineage, const ReplicaState& copy);
  bool spoilt(const Lineage& lineage) const { return spoilt_.count(JobLineage(lineage)) != 0; }
  // Whether the job went back and left this lineage.
  bool GivenUp(const Lineage& lineage) const { return given_up_.count(JobLineage(lineage)) != 0; }
  // Whether the final state of this lineage may have other bits, because nobody could detect them.
  bool BeyondSight(const Lineage& lineage) const;
  // Whether bits flipped in every member of a generation of this lineage and left the same wrong state in all.
  bool AllHitAlike(const Lineage& lineage) const;
  // Whether bits flipped in several members of a generation and left the same wrong state of this step in them, so that
  // they outvote the correct ones.
  bool SomeHitAlike(int64_t step) const;

  const Reference& reference() const { return reference_; }
  int64_t highest_committed() const { return highest_committed_; }
  int64_t highest_applied() const { return highest_applied_; }
  int64_t applied() const { return applied_; }

 private:
  struct Spoilt {
    int64_t from = 0;    // the first step that may have other bits
    bool gone = false;   // the corrupted replica is gone
    bool alike = false;  // all members of a generation began with the same wrong bits
    bool all_hit_alike = false;
  };

  bool Excused(const Lineage& lineage, int64_t step) const;
  bool IsRight(const ReplicaState& state) const;
  // The job continues as `lineage` from `state` of the lineage `from`, which is wrong. Returns false if that could have
  // been detected.
  bool GoesOnWrong(const Lineage& from, const Lineage& lineage, const ReplicaState& state);

  TinyJob job_;
  Reference reference_;
  DigestFunction digest_of_;  // names states as checkpoints do
  std::vector<std::string> violations_;
  std::map<Generation, Position> started_;
  int64_t highest_committed_ = -1;
  int64_t highest_applied_ = 0;
  int64_t applied_ = 0;
  int64_t commits_ = 0;
  Term newest_scan_ = 0;
  std::map<Lineage, Spoilt> spoilt_;  // by job lineage
  std::set<Lineage> given_up_;
  std::map<Generation, std::set<uint32_t>> hit_;  // ranks of corrupted members
  // By step, generation and digest of a wrong state: the ranks that were hit in this generation and then held that
  // state.
  std::map<std::tuple<int64_t, Generation, uint64_t>, std::set<uint32_t>> hit_alike_;
  std::set<uint64_t> held_by_all_;  // digests of wrong states that every member reached in this way
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_ORACLE_H_
