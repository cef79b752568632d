// Tracks what the members agree on: the step that all of them applied, and the records and evaluations of those steps
// (rule 7).
//
// Invariants
//   * A record or an evaluation is emitted only for an agreed step, once per step and lineage, in order.
//   * A slice that comes again with other bits is reported, and never replaces the first.
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
  // The job continues from `step`. Evaluations of steps up to `evaluated` were emitted by an earlier chief.
  ProgressTracker(Lineage lineage, uint64_t step, uint64_t eval_slices, uint64_t evaluated)
      : lineage_(std::move(lineage)), agreed_(step), eval_slices_(eval_slices), told_evaluations_(evaluated) {}

  // A generation begins: every member stands at its position of `lineage`. Forgets what the last generation's members
  // had applied; agreed steps stay agreed, unless the lineage is new.
  void Begin(const Lineage& lineage, const std::map<Incarnation, Position>& members);
  // From `step` on the job continues as `lineage`: what was agreed and emitted up to there stays, later steps are
  // emitted again when they are computed again.
  void GoOnAs(const Lineage& lineage, uint64_t step);

  // Keeps at most kMaxPending records that are not agreed yet.
  void AddRecords(const std::vector<StepRecord>& records);
  void Applied(const Incarnation& member, const Position& position);

  // The steps that became agreed since the last call, with their records; nullopt if there are none.
  std::optional<StepsAgreed> TakeAgreed();
  uint64_t agreed() const { return agreed_; }
  // The position that this member of the newest generation is known to have applied.
  Position AppliedBy(const Incarnation& member) const {
    const auto found = applied_.find(member);
    return found == applied_.end() ? Position() : found->second;
  }
  // The step that every member of the newest generation has applied; 0 while there is none.
  uint64_t LowestApplied() const { return at_step_.empty() ? 0 : at_step_.begin()->first; }

  // Adds slices; keeps those of the newest evaluations, about kMaxSlices in all. Returns what is wrong, or an empty
  // string: a slice that came before with other bits.
  std::string AddSlices(const EvalReport& report);
  // The complete evaluations of agreed steps, each once.
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
