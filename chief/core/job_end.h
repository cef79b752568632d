// How the job ends: why it ends, when the state that ends it is published, and which workers must hear of the end
// before the chief exits (rules 6 and 21).
//
//   1 goes on ──Stop──▶ 2 ending: saved first ──what is held is published──▶ 3 told ──all heard, or gave up──▶ exit
//       └──the last step is published, with its evaluation──────────────────▶ 3
//
// Invariants
//   * The first ending that is requested counts.
//   * No worker is told before the state that ends the job is published.
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_JOB_END_H_
#define LOCKSTEP_CHIEF_CORE_JOB_END_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "chief/core/checkpoint_tracker.h"
#include "chief/core/core_context.h"
#include "chief/core/departures.h"
#include "chief/core/generation_life.h"
#include "chief/core/roster.h"

namespace lockstep::chief {

class JobEnd {
 public:
  struct Ending {
    int32_t code = 0;
    std::string reason;
    bool evaluates = false;  // the last state is evaluated before it is saved
  };

  // Requests that the job ends with `ending` once its state is saved. Returns false if another ending is pending.
  bool Stop(Ending ending);
  // The ending that is pending: a stop, an error or the time limit.
  const std::optional<Ending>& pending() const { return pending_; }
  const std::optional<Ending>& result() const { return result_; }

  // The ending that the published state has reached; nullopt if none yet. `agreed`: the step that all have applied.
  std::optional<Ending> Reached(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                                const Departures& gone, uint64_t agreed) const;
  // Ends the job: enters Done and tells all connected workers.
  void Finish(const CoreContext& context, const Ending& ending, GenerationLife& life, const CheckpointTracker& saves,
              Departures& gone);
  // Tells a worker the result. REQUIRES: there is one.
  void Tell(const CoreContext& context, const Worker& worker, const CheckpointTracker& saves, Departures& gone) const;
  // Whether every worker has heard of the end or given up, so that the chief may exit. Called in Done.
  bool MayExit(const CoreContext& context, const GenerationLife& life, const Departures& gone);

  void ShiftDeadlines(absl::Duration gap) {
    if (done_since_.has_value()) *done_since_ += gap;
  }

 private:
  std::optional<Ending> pending_;
  std::optional<Ending> result_;
  std::optional<absl::Time> done_since_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_JOB_END_H_
