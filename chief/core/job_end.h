// How the job ends: what was asked for or happened, when what it takes is published, and who has to hear of it before
// the chief may go (rules 6 and 21).
//
//   1 goes on ──Stop──▶ 2 ending: saved first ──what is held is published──▶ 3 told ──all heard, or gave up──▶ exit
//       └──the last step is published, with its evaluation──────────────────▶ 3
//
// Invariants
//   * The first ending counts.
//   * Nobody is told before what ends the job is published.
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

  // The job is to end so, once what is trained is saved. False: it ends otherwise already.
  bool Stop(Ending ending);
  // A stop, an error or the time limit is pending.
  const std::optional<Ending>& pending() const { return pending_; }
  const std::optional<Ending>& result() const { return result_; }

  // How the job ends by what is published; nullopt: it does not yet. `agreed`: the step that all have applied.
  std::optional<Ending> Reached(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves,
                                const Departures& gone, uint64_t agreed) const;
  // It has ended: tells all that are here. The phase is Done from now on.
  void Finish(const CoreContext& context, const Ending& ending, GenerationLife& life, const CheckpointTracker& saves,
              Departures& gone);
  // A worker is here. REQUIRES: there is a result.
  void Tell(const CoreContext& context, const Worker& worker, const CheckpointTracker& saves, Departures& gone) const;
  // Whether everybody heard of it, or gave up. Called in Done.
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
