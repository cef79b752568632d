// Decides when the running generation ends so that ready workers can join it (rules 3, 12, 15). They must reach all
// members, and workers that repeatedly join and are soon lost wait longer each time (JoinBackoff).
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_NEWCOMERS_H_
#define LOCKSTEP_CHIEF_CORE_NEWCOMERS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "chief/core/core_context.h"
#include "chief/core/generation_life.h"
#include "chief/core/join_backoff.h"
#include "chief/core/reachability.h"
#include "chief/core/roster.h"

namespace lockstep::chief {

class Newcomers {
 public:
  // The worker becomes a member for the first time, while the job stands at `step`.
  void Joined(const Worker& worker, uint64_t step) { joins_.Joined({worker.host, worker.name()}, step); }
  // A worker that had been a member is lost, while the job stands at `step`.
  void Lost(const CoreContext& context, const std::string& host, const std::string& name, uint64_t step);
  // Whether the worker may end a generation.
  bool MayAsk(const Worker& worker, absl::Time now) const { return joins_.MayAsk({worker.host, worker.name()}, now); }
  // Whether to end `current` for workers that could step with its members.
  bool ShouldEndGeneration(const CoreContext& context, const GenerationLife::Current& current,
                           const Reachability& pairs);

  absl::Time NextDeadline(absl::Time now) const { return joins_.NextDeadline(now); }
  void ShiftDeadlines(absl::Duration gap) { joins_.ShiftDeadlines(gap); }

 private:
  JoinBackoff joins_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_NEWCOMERS_H_
