// Compares the digests that replicas report of their states, and names the replicas in the minority (rule 22).
//
// All replicas of one lineage hold the same bits at the same step. Two different digests of one step mean that one of
// the states was corrupted. Only a majority can tell which one, and only a majority of workers that computed the step
// together: a corrupted replica contributes wrong gradients, which change the state of its whole generation. A replica
// that received its state from another one is no independent witness, as it holds whatever the sender held. Such copies
// count as one vote with their source until the next comparison that all members pass.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_AUDIT_H_
#define LOCKSTEP_CHIEF_CORE_AUDIT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

class Audit {
 public:
  static constexpr size_t kMaxSteps = 64;
  // Audits come every 16 steps, and the copies that workers keep may be many audits old.
  static constexpr size_t kMaxAudited = 8192;
  // Generations remembered per member, so that digests which arrive late are still attributed to the right one.
  static constexpr size_t kMaxGenerations = 8;

  // A state whose digest every member of its generation reported.
  struct Audited {
    Digest digest;
    absl::Duration trained_for;  // the job's training time when the last of them reported
  };

  // A generation begins at `step`: each member restored a whole checkpoint and verified its digest. Forgets all earlier
  // comparisons.
  void Restored(uint64_t step, const std::vector<Incarnation>& members);
  // A generation continues from live states: `receivers` copied the state of `source`, the others kept theirs.
  // `same_bits`: recomputing a step gives the same bits as before; if false, digests of steps after `step` are
  // forgotten.
  void GoesOn(uint64_t step, const std::vector<Incarnation>& members, const Incarnation& source,
              const std::set<Incarnation>& receivers, bool same_bits);
  // A generation of the previous chief was adopted. Only that chief knew which members copied from which, so nobody is
  // named until all members agree once.
  void Adopted(uint64_t step, const std::vector<Incarnation>& members);

  // Records the digest of `member` at `step`. Returns false if another digest of that step is known. Keeps the newest
  // kMaxSteps steps.
  bool Agrees(const Incarnation& member, uint64_t step, const Digest& digest, absl::Duration trained_for = {});
  // The state that all members had at this step; null if that is not known. Keeps the newest kMaxAudited steps.
  const Audited* AuditedAt(uint64_t step) const {
    const auto found = audited_.find(step);
    return found == audited_.end() ? nullptr : &found->second;
  }

  // The newest step for which AuditedAt is not null; 0 if there is none.
  uint64_t NewestAudited() const { return audited_.empty() ? 0 : audited_.rbegin()->first; }
  // Of the newest generation.
  const std::set<Incarnation>& members() const { return members_; }

  // The members of the newest generation that have not reported a digest of the first step at which replicas differ.
  std::vector<Incarnation> Awaited() const;
  // The workers that differ from a majority of independent witnesses at that step; empty if nobody differs or there is
  // no such majority.
  std::vector<Incarnation> Minority() const;

 private:
  struct Told {
    Digest digest;
    Incarnation origin;  // the worker whose state it was: its own or the source of its copy
    int generation;      // the generation that computed it, counted from the newest restore; 0: an earlier one
  };
  using Digests = std::map<Incarnation, Told>;

  void Begin(uint64_t step, const std::vector<Incarnation>& members);
  const Incarnation& OriginOf(const Incarnation& member) const {
    const auto found = origins_.find(member);
    return found == origins_.end() ? member : found->second;
  }
  bool AllAgree(const Digests& digests) const;
  Told Tell(const Incarnation& member, uint64_t step, const Digest& digest) const;
  bool HasTold(const Incarnation& member) const;
  // REQUIRES: one generation computed all of `digests`.
  static std::vector<Incarnation> MinorityOf(const Digests& digests);

  std::map<uint64_t, Digests> digests_;  // by step
  std::map<uint64_t, Audited> audited_;  // by step
  std::optional<uint64_t> differs_at_;   // the first step with two different digests
  std::set<Incarnation> members_;
  uint64_t begin_ = 0;  // where they began
  int generation_ = 0;  // the newest, counted from the newest restore
  // The newest generations of each member, by the step at which they began.
  std::map<Incarnation, std::map<uint64_t, int>> generations_;
  std::map<Incarnation, Incarnation> origins_;  // from a member that holds a copy to the source of that copy
  bool origins_known_ = false;                  // false until a generation began under this chief
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_AUDIT_H_
