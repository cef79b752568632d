// Reports of a worker that are not sent yet, because the chief is away or the next report is not due. If too many wait,
// the oldest are dropped.
//
// Threading: owned by SessionCore.
#ifndef LOCKSTEP_WORKER_SESSION_UNSENT_REPORTS_H_
#define LOCKSTEP_WORKER_SESSION_UNSENT_REPORTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::worker {

class UnsentReports {
 public:
  void Add(StepRecord record);
  void Add(StateDigest digest);
  // Drops all, because they belong to an abandoned lineage.
  void Clear();
  // The next report includes the position, whatever the last session has sent.
  void SayPositionAgain() { told_ = {}; }

  // Whether a worker at `position` has anything to report.
  bool IsPending(const Position& position) const { return !records_.empty() || !digests_.empty() || told_ != position; }
  absl::Time next() const { return next_; }
  // Returns and removes all reports; the next report is due `interval` later.
  Report Take(absl::Time now, absl::Duration interval, const Generation& generation, const Lineage& lineage,
              const Position& position);

 private:
  std::vector<StepRecord> records_;
  std::vector<StateDigest> digests_;
  Position told_;
  absl::Time next_ = absl::InfinitePast();
};

// The results of the latest evaluations in which this rank took part, for a chief that was away.
class HeldEvaluations {
 public:
  void Add(const Lineage& lineage, uint64_t step, const SliceResult& slice);
  // Lineage `from` continues as `to`.
  void Rename(const Lineage& from, const Lineage& to);
  // The job returned to `step` and continues as `lineage`.
  void GoBackTo(uint64_t step, const Lineage& lineage);
  // Oldest first, in messages of at most kMaxRepeated slices.
  std::vector<EvalReport> Messages() const;

 private:
  std::vector<EvalReport> evaluations_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_UNSENT_REPORTS_H_
