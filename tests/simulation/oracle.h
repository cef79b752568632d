// What must hold in every schedule, checked while it runs.
//
//   * An applied step leaves the state that an undisturbed run has there, and used each sample of the step once.
//   * A replica that is alive never goes back within its lineage; a chief never forms a generation below a manifest
//     that it published or found.
//   * What was committed stays restorable; an older chief commits nothing once a newer one has scanned.
//   * Every rank of a generation starts it at the same position.
//   * The job ends where an undisturbed run ends, and with keep_best its best state stands on the disk.
//   * Replicas are said to differ only after a bit of one flipped, and the job goes back to a state that is right.
//
// A bit that flips in a replica spoils the lineage that it is of: from its step on other states are excused there,
// until the job goes on under another lineage, which is judged like any other. They stay excused to the end only where
// nobody can see the flip any more (docs/design/0011, not covered): its replica is gone, and what is left is alike; or
// every member was hit in the same way, so that all that can be compared is equal.
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

  // The first violation counts; what follows is mostly its consequence.
  void Violation(std::string what);
  bool violated() const { return !violations_.empty(); }
  const std::vector<std::string>& violations() const { return violations_; }

  // A replica made the update that leads to `state`, from the gradients of these logical shards.
  void Applied(const std::string& who, const Lineage& lineage, const ReplicaState& state, std::vector<uint64_t> shards);
  // A replica took a state from a peer or a checkpoint in place of what it held (`had`: anything at all).
  void Replaced(const std::string& who, const Lineage& lineage, bool had, const ReplicaState& before,
                const ReplicaState& after);
  // A rank entered a generation.
  void Started(const std::string& who, const Generation& generation, const Position& position);
  void CheckState(const std::string& who, const Lineage& lineage, const ReplicaState& state);
  // The ledger of a state whose evaluation, if one was due, was completed.
  void CheckLedger(const std::string& who, const EvaluationLedger& ledger);
  // A manifest became visible; not accepted: it will be set aside.
  void Published(Term term, const SnapshotId& snapshot, const Digest& digest, bool accepted);
  // A published manifest is durable and its chief knows.
  void Committed(uint64_t step) {
    ++commits_;
    highest_committed_ = std::max(highest_committed_, static_cast<int64_t>(step));
  }
  int64_t commits() const { return commits_; }
  // A chief accepted its list of manifests; older chiefs are over from here on. `newest` is -1 for an empty list.
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
  // The replica that was hit ended, or took another state, before the job went back.
  void FlipGone(const Lineage& lineage);
  // The members of a generation begin with `state`, all of them.
  void BeginAlike(const Lineage& lineage, const ReplicaState& state);
  // The chief is about to give up what `lineage` computed.
  void Differs(const Lineage& lineage, const std::string& reason);
  // It is durable that the job goes on as `lineage` from `checkpoint`, of the lineage `from`.
  void WentBack(const Lineage& from, const Lineage& lineage, const ReplicaState& checkpoint);
  // A replica took up a copy of a state that `from` had, and begins `lineage` with it.
  void TookUp(const std::string& who, const Lineage& from, const Lineage& lineage, const ReplicaState& copy);
  bool spoilt(const Lineage& lineage) const { return spoilt_.count(JobLineage(lineage)) != 0; }
  // Whether the job went back, and on as another one.
  bool GivenUp(const Lineage& lineage) const { return given_up_.count(JobLineage(lineage)) != 0; }
  // Whether what this lineage ends with may have other bits, because nobody could see that it has.
  bool BeyondSight(const Lineage& lineage) const;
  // Whether bits flipped in every member of a generation of this lineage, and left the same wrong state in all of them.
  bool AllHitAlike(const Lineage& lineage) const;
  // Whether bits flipped in several members of a generation, and left the same wrong state of this step in them: they
  // outvote those that are right.
  bool SomeHitAlike(int64_t step) const;

  const Reference& reference() const { return reference_; }
  int64_t highest_committed() const { return highest_committed_; }
  int64_t highest_applied() const { return highest_applied_; }
  int64_t applied() const { return applied_; }

 private:
  struct Spoilt {
    int64_t from = 0;    // the first step that may have other bits
    bool gone = false;   // the replica that was hit
    bool alike = false;  // a generation began with other bits, the same on all of its members
    bool all_hit_alike = false;
  };

  bool Excused(const Lineage& lineage, int64_t step) const;
  bool IsRight(const ReplicaState& state) const;
  // The job goes on as `lineage` from `state` of the lineage `from`, which is wrong. False: somebody could see that.
  bool GoesOnWrong(const Lineage& from, const Lineage& lineage, const ReplicaState& state);

  TinyJob job_;
  Reference reference_;
  DigestFunction digest_of_;  // as checkpoints are named
  std::vector<std::string> violations_;
  std::map<Generation, Position> started_;
  int64_t highest_committed_ = -1;
  int64_t highest_applied_ = 0;
  int64_t applied_ = 0;
  int64_t commits_ = 0;
  Term newest_scan_ = 0;
  std::map<Lineage, Spoilt> spoilt_;  // by the job's lineage
  std::set<Lineage> given_up_;
  std::map<Generation, std::set<uint32_t>> hit_;  // ranks
  // Of wrong states, by step, generation and digest: the ranks that were hit in this generation and then held it.
  std::map<std::tuple<int64_t, Generation, uint64_t>, std::set<uint32_t>> hit_alike_;
  std::set<uint64_t> held_by_all_;  // digests of those that every member came to in this way
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_ORACLE_H_
