// Who can step together (rules 3, 11, 12, 21): a pure function of who is here, who reaches whom, who holds what, and
// what the storage has.
//
// Invariants of a Team
//   * Every two of its members reach each other, none of them pauses or was dismissed, all are ready and at rest.
//   * It has at most `capacity` members, in rank order.
//   * What is in nobody's hands but those of workers outside it is in the storage, or `saved_first` names it.
// Threading: thread-compatible (pure functions).
#ifndef LOCKSTEP_CHIEF_CORE_TEAM_CHOICE_H_
#define LOCKSTEP_CHIEF_CORE_TEAM_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/history.h"
#include "chief/core/reachability.h"
#include "chief/core/roster.h"
#include "chief/core/stragglers.h"
#include "common/protocol/ids.h"

namespace lockstep::chief {

struct Team {
  std::vector<Worker*> members;         // in rank order
  uint32_t staying = 0;                 // connected and able to step together, spares included, leavers not
  uint32_t present = 0;                 // those, and the ready ones that are known not to reach them
  bool in_doubt = false;                // a test of a pair is under way that decides who they are
  std::optional<Position> saved_first;  // held only by workers that cannot be with the members
};

class TeamChoice {
 public:
  struct Facts {
    Roster& roster;
    const Reachability& pairs;
    const History& history;
    const Stragglers* stragglers;  // that give way to spare workers; null: none does
    uint64_t first_unsaved;        // states of this step or a later one are not in the storage
    size_t capacity;
    absl::Time now;
  };

  explicit TeamChoice(const Facts& facts) : facts_(facts) {}

  // `with_leavers`: leavers that hold a state are members once more, so that others take it over.
  Team Choose(bool with_leavers) const;
  // Whether more workers reach each other than `members` are, none of which reaches all of these: a worker that reached
  // the chief first and reaches no peer must not keep all others from stepping.
  bool LargerTeamWaits(const std::set<Incarnation>& members) const;
  // What does not hold of `team`; empty when all does.
  std::string BrokenInvariant(const Team& team) const;

 private:
  std::vector<Worker*> CandidatesByState(bool with_leavers) const;
  std::vector<Worker*> LargestOf(const std::vector<Worker*>& candidates) const;
  // Puts a holder of the newest state into `team`, or names that state. `able`: of the candidates, who may form.
  void KeepUnsaved(const std::vector<Worker*>& candidates, const std::vector<Worker*>& able, Team& team) const;
  // Those that are ready and cannot be in the team now. Who has not met all of it yet may be in it a moment later.
  uint32_t KnownOutside(const std::vector<Worker*>& candidates, const std::vector<Worker*>& members) const;
  // With spare workers, what is cut off at the end of `members` are the stragglers.
  void PutStragglersLast(std::vector<Worker*>& members) const;
  Position PositionOf(const Worker& worker) const;

  Facts facts_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_TEAM_CHOICE_H_
