// How a worker gets ready to be a member (rules 11, 30 to 32): the job's kernel plan is made, replayed and probed, its
// data are compared with the job's, and its connections to peers are tested.
//
//   1 welcomed ──no plan is known, it is the first──▶ 2 planning ──the plan is stored──▶ 1
//       │ ──a plan is known──▶ 3 preparing ──same plan, same data──▶ 4 ready: tests connections
//       │                          └──cannot run it──▶ refused, or the plan is made anew where nothing lives by it
//       └────────────── the plan or the job was replaced meanwhile ──┘
//
// Invariants
//   * At most one worker plans at a time, and none while a plan is known or being stored.
//   * Every ready worker has the job's plan and data.
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_PREPARATION_H_
#define LOCKSTEP_CHIEF_CORE_PREPARATION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "chief/core/core_context.h"
#include "chief/core/events.h"
#include "chief/core/plan_tracker.h"
#include "chief/core/policy.h"
#include "chief/core/reachability.h"
#include "chief/core/roster.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

class Preparation {
 public:
  // A worker cannot take part: it exits with `code`, and `message` is its last line.
  struct Refusal {
    int32_t code = 0;
    std::string message;
  };

  explicit Preparation(const RecoveredState& recovered) : plan_(recovered.plan_hash, recovered.data_digest) {}

  const PlanTracker& plan() const { return plan_; }
  // Stores the plan that the worker made, unless another worker was appointed meanwhile.
  std::optional<Refusal> Made(const CoreContext& context, Worker& worker, const PlanMade& message);
  void Stored(const PlanStored& event, absl::Time now) { plan_.Stored(event, now); }
  // The storage refused the plan; it is retried.
  void StoreRefused(const CoreContext& context, const std::string& what);
  // A worker's Hello says that it kept a plan and data from an earlier session.
  std::optional<Refusal> Kept(const CoreContext& context, Worker& worker, const Ready& ready, Reachability& pairs);
  std::optional<Refusal> Prepared(const CoreContext& context, Worker& worker, const Ready& ready, Reachability& pairs);
  // A worker could not prepare. `may_replan`: nothing was trained with the plan yet.
  std::optional<Refusal> Failed(const CoreContext& context, Worker& worker, const PrepareFailed& message,
                                bool may_replan);
  void Tested(const CoreContext& context, const Worker& worker, const PeersTested& message, Reachability& pairs) const;

  // Appoints a worker to make the plan, or tells workers that are not ready to prepare.
  void Advance(const CoreContext& context);
  // Tells workers to run the connection tests that are due.
  void TestConnections(const CoreContext& context, Reachability& pairs);
  void ShiftDeadlines(absl::Duration gap) { plan_.ShiftDeadlines(gap); }
  std::string BrokenInvariant(const Roster& roster) const;

 private:
  bool IsOfThisJob(const CoreContext& context, const Ready& ready) const;
  std::optional<Refusal> Accept(Worker& worker, const Ready& ready, Reachability& pairs);
  // Whether no worker runs the plan, holds a state made with it, or is preparing it, and `asking` did not make it.
  bool NobodyUses(const Worker& asking, const Roster& roster) const;
  void HavePlanMade(const CoreContext& context);

  PlanTracker plan_;
  uint64_t test_rounds_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_PREPARATION_H_
