// Carries out `lockstep drain`. A drained worker leaves as one that was asked by SIGTERM does: its members meet at a
// boundary, and no last copy of a state leaves before it is saved. The worker learns of the drain only from the
// Shutdown that ends it, so if the chief dies in between, it steps on; the next chief reads the drain from the storage.
//
// Invariants
//   * Every connected worker that a drain names is marked as leaving. One that leaves only because of a drain stays
//     when the drain is lifted, unless it was dismissed.
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_DRAIN_DESK_H_
#define LOCKSTEP_CHIEF_CORE_DRAIN_DESK_H_

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "chief/core/checkpoint_tracker.h"
#include "chief/core/core_context.h"
#include "chief/core/drains.h"
#include "chief/core/events.h"
#include "chief/core/generation_life.h"
#include "chief/core/roster.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

class DrainDesk {
 public:
  explicit DrainDesk(const std::vector<Drain>& stored) : drains_(stored) {}

  const Drains& drains() const { return drains_; }
  // Text for people, appended to what the job waits for; empty if nothing is drained.
  std::string Text() const;

  // Decides about the request; accepted drains are in force from now on. `ended`: whether the job has ended.
  DrainDecided Decide(const CoreContext& context, const DrainRequested& event, bool ended);
  // Why a process with this Hello is turned away; nullopt if it is not. A worker that holds a state is let in.
  std::optional<std::string> WhyTurnedAway(const CoreContext& context, const Hello& hello);
  // A worker connected.
  void Came(const CoreContext& context, const Worker& worker);
  void Forget(const Incarnation& gone) { late_.erase(gone); }
  // Ends the process of this worker. REQUIRES: no state is lost by its end.
  void Dismiss(const CoreContext& context, Worker& worker, const std::string& reason) const;
  // Ends the drained workers whose time is over: in the middle of a step if others hold the same state. If one cannot
  // go, people hear why, once.
  void EndLate(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves);

 private:
  // Why the request cannot be met; empty when it can.
  std::string WhyNot(const DrainRequested& event, bool ended) const;
  void Add(const CoreContext& context, const DrainRequested& event, std::vector<std::string>& lines);
  void Lift(const CoreContext& context, const DrainRequested& event, std::vector<std::string>& lines);
  // Marks the workers that a drain names as leaving, and unmarks those that no drain names any more.
  void Mark(Roster& roster);

  Drains drains_;
  std::set<Incarnation> late_;  // people were told that they are late
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_DRAIN_DESK_H_
