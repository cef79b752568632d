// What a worker has to report of its steps and could not yet: the chief is away, or was told a moment ago. The oldest
// go first where too much waits.
//
// Threading: thread-compatible; owned by SessionCore.
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
  // They were of a course of the weights that counts no more.
  void Clear();
  // Whatever the last session carried, where this worker stands is said once more.
  void SayPositionAgain() { told_ = {}; }

  // Something is to be told by a worker that stands at `position`.
  bool IsPending(const Position& position) const { return !records_.empty() || !digests_.empty() || told_ != position; }
  absl::Time next() const { return next_; }
  // All of it; the next report is due `interval` later.
  Report Take(absl::Time now, absl::Duration interval, const Generation& generation, const Lineage& lineage,
              const Position& position);

 private:
  std::vector<StepRecord> records_;
  std::vector<StateDigest> digests_;
  Position told_;
  absl::Time next_ = absl::InfinitePast();
};

// What the newest evaluations gave, as far as this rank took part: a chief that was away hears of them.
class HeldEvaluations {
 public:
  void Add(const Lineage& lineage, uint64_t step, const SliceResult& slice);
  // `from` goes on as `to`.
  void Rename(const Lineage& from, const Lineage& to);
  // The job went back to `step`, and goes on as `lineage`.
  void GoBackTo(uint64_t step, const Lineage& lineage);
  // Oldest first, in messages of at most kMaxRepeated slices.
  std::vector<EvalReport> Messages() const;

 private:
  std::vector<EvalReport> evaluations_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_UNSENT_REPORTS_H_
