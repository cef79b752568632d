// What the members agree on: the step that all of them applied, the records of those steps and the evaluations of
// them (rule 7).
//
// Invariants
//   * A record or an evaluation leaves only for an agreed step, each step once per lineage, in order.
//   * The same slice with other bits is a finding, never a replacement.
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_PROGRESS_TRACKER_H_
#define LOCKSTEP_CHIEF_CORE_PROGRESS_TRACKER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chief/core/actions.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

class ProgressTracker {
 public:
  // The job goes on from `step`; of evaluations up to `evaluated` an earlier chief has told.
  ProgressTracker(Lineage lineage, uint64_t step, uint64_t eval_slices, uint64_t evaluated)
      : lineage_(std::move(lineage)), agreed_(step), eval_slices_(eval_slices), told_evaluations_(evaluated) {}

  // A generation begins: every member stands at `position` of `lineage`. Clears what the last generation's members had
  // applied; what was agreed stays agreed, unless the lineage is new.
  void Begin(const Lineage& lineage, const std::map<Incarnation, Position>& members);
  // The steps after `step` are those of `lineage`: what was agreed and told up to there stays so, later steps are told
  // again as they are computed again.
  void GoOnAs(const Lineage& lineage, uint64_t step);

  // Keeps at most kMaxPending records that are not agreed yet.
  void AddRecords(const std::vector<StepRecord>& records);
  void Applied(const Incarnation& member, const Position& position);

  // Steps that became agreed since the last call, with their records.
  std::optional<StepsAgreed> TakeAgreed();
  uint64_t agreed() const { return agreed_; }
  // What this member of the newest generation has applied, as far as it is known.
  Position AppliedBy(const Incarnation& member) const {
    const auto found = applied_.find(member);
    return found == applied_.end() ? Position() : found->second;
  }
  // The step that every member of the newest generation has applied; 0 while there is none.
  uint64_t LowestApplied() const { return at_step_.empty() ? 0 : at_step_.begin()->first; }

  // Keeps slices of the newest evaluations, of as many as are kMaxSlices. Returns what is wrong: a slice that came
  // before with other bits.
  std::string AddSlices(const EvalReport& report);
  // Evaluations that are complete and of an agreed step, each once.
  std::vector<EvaluationDone> TakeEvaluations();

  static constexpr size_t kMaxPending = 8192;
  static constexpr size_t kMaxPositions = 64;
  // A job of short steps makes hundreds of evaluations before it reports their steps.
  static constexpr size_t kMaxSlices = 65536;

 private:
  Lineage lineage_;
  std::map<Incarnation, Position> applied_;
  std::map<uint64_t, size_t> at_step_;  // how many members have applied this step and no later one
  uint64_t agreed_;
  uint64_t told_ = 0;
  bool told_any_ = false;
  std::map<uint64_t, StepRecord> pending_;
  uint64_t eval_slices_;
  uint64_t told_evaluations_;
  std::map<uint64_t, std::map<uint64_t, SliceResult>> evaluations_;
  std::set<uint64_t> evaluated_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_PROGRESS_TRACKER_H_
