// Workers that people send away (`lockstep drain`). A drained worker goes as one does that was asked itself: members
// meet at a boundary, nobody's last copy leaves before it is saved. It hears of it only by the word that ends it, so a
// chief that dies in between leaves a worker that steps on; the next chief has the drain from the storage.
//
// Invariants
//   * Whoever a drain names is leaving, from the moment that it is here; who leaves by a drain alone stays when that is
//     lifted, unless it was dismissed.
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
  // For people, after what is waited for; empty while nothing is drained.
  std::string Text() const;

  // Answers the request; the drains hold from now on. `ended`: the job has.
  DrainDecided Decide(const CoreContext& context, const DrainRequested& event, bool ended);
  // Why a process that says this Hello is turned away; nullopt: it is not. A worker that holds a state is let in.
  std::optional<std::string> WhyTurnedAway(const CoreContext& context, const Hello& hello);
  // A worker is here.
  void Came(const CoreContext& context, const Worker& worker);
  void Forget(const Incarnation& gone) { late_.erase(gone); }
  // It is at rest, and nobody loses anything by its end.
  void Dismiss(const CoreContext& context, Worker& worker, const std::string& reason) const;
  // Those whose time is over: they go in the middle of a step where others hold what they hold. Else people hear why
  // they cannot, once.
  void EndLate(const CoreContext& context, const GenerationLife& life, const CheckpointTracker& saves);

 private:
  // Why the request cannot be met; empty when it can.
  std::string WhyNot(const DrainRequested& event, bool ended) const;
  void Add(const CoreContext& context, const DrainRequested& event, std::vector<std::string>& lines);
  void Lift(const CoreContext& context, const DrainRequested& event, std::vector<std::string>& lines);
  // Marks those that a drain names as leaving, and unmarks those that none names any more.
  void Mark(Roster& roster);

  Drains drains_;
  std::set<Incarnation> late_;  // of which was said that they are late
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_DRAIN_DESK_H_
