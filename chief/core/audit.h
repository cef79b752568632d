// Compares what replicas say of their states, and names the ones in the minority (rule 22).
//
// All replicas of one lineage hold the same bits at the same step. Two digests of one step that differ mean that one of
// the states was hit; whose, only a majority can tell, and only of those that computed the step together: the gradients
// of a replica that was hit make those of its whole generation other ones. Not every replica is a witness of its own:
// one that received its state from another holds whatever the sender held. Until the next comparison that all members
// pass, that one included, such copies count as one voice.
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
  // Audits come every 16 steps, and copies that workers keep may be many audits old.
  static constexpr size_t kMaxAudited = 8192;
  // Of a member, for what it tells late.
  static constexpr size_t kMaxGenerations = 8;

  // A state that every member of its generation had.
  struct Audited {
    Digest digest;
    absl::Duration trained_for;  // when the last of them told
  };

  // A generation begins at `step`: its members restored a checkpoint, each whole and under its digest. What was
  // compared before is forgotten.
  void Restored(uint64_t step, const std::vector<Incarnation>& members);
  // Or it goes on from live states: `receivers` got that of `source`, the others kept theirs. `same_bits`: steps that
  // are computed once more give what they gave before; else what was told of steps after this one is forgotten.
  void GoesOn(uint64_t step, const std::vector<Incarnation>& members, const Incarnation& source,
              const std::set<Incarnation>& receivers, bool same_bits);
  // Or it was adopted: who copied from whom, the chief before knew. Nobody is named until all members agree once.
  void Adopted(uint64_t step, const std::vector<Incarnation>& members);

  // `member` says that its state at `step` has this digest. False: another one of the same step is known. Keeps the
  // newest kMaxSteps steps.
  bool Agrees(const Incarnation& member, uint64_t step, const Digest& digest, absl::Duration trained_for = {});
  // What all had at this step; null where that is not known. Keeps the newest kMaxAudited steps.
  const Audited* AuditedAt(uint64_t step) const {
    const auto found = audited_.find(step);
    return found == audited_.end() ? nullptr : &found->second;
  }

  // The newest of those steps; 0: there is none.
  uint64_t NewestAudited() const { return audited_.empty() ? 0 : audited_.rbegin()->first; }
  // Of the newest generation.
  const std::set<Incarnation>& members() const { return members_; }

  // The members of the newest generation that have not told the digest of the first step at which replicas differ.
  std::vector<Incarnation> Awaited() const;
  // Who differs from a majority of independent witnesses at that step; empty while nobody differs, or where there is no
  // such majority.
  std::vector<Incarnation> Minority() const;

 private:
  struct Told {
    Digest digest;
    Incarnation origin;  // whose state it was then
    int generation;      // that computed it, counted from the newest restore; 0: one of before
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
  // Of digests that one generation computed.
  static std::vector<Incarnation> MinorityOf(const Digests& digests);

  std::map<uint64_t, Digests> digests_;  // by step
  std::map<uint64_t, Audited> audited_;  // by step
  std::optional<uint64_t> differs_at_;   // the first step of which two digests came
  std::set<Incarnation> members_;
  uint64_t begin_ = 0;  // where they began
  int generation_ = 0;  // the newest, counted from the newest restore
  // By member, and by where they began: the newest generations that it was in.
  std::map<Incarnation, std::map<uint64_t, int>> generations_;
  std::map<Incarnation, Incarnation> origins_;  // of copies: whose state it was
  bool origins_known_ = false;                  // not before a generation began under this chief
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_AUDIT_H_
