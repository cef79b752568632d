// Chooses the workers that step together (rules 3, 11, 12, 21): a pure function of which workers are connected, which
// reach each other, what states they hold, and what the storage has.
//
// Invariants of a Team
//   * Every two of its members reach each other, none of them pauses or was dismissed, all are ready and at rest.
//   * It has at most `capacity` members, in rank order.
//   * A state that only workers outside the team hold is in the storage, or `saved_first` names it.
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
  uint32_t staying = 0;                 // able to step together: the members and spares, without leavers
  uint32_t present = 0;                 // `staying`, plus ready workers that are known not to reach the members
  bool in_doubt = false;                // a connection test is under way that may change the choice
  std::optional<Position> saved_first;  // a state held only by workers that cannot join: it must be saved first
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

  // `with_leavers`: leavers that hold a state may be members once more, so that others take it over.
  Team Choose(bool with_leavers) const;
  // Whether a larger team waits: more ready workers than `members` reach each other, and none of them reaches all of
  // `members`. A worker that reached the chief first but no peer must not keep all others from stepping.
  bool LargerTeamWaits(const std::set<Incarnation>& members) const;
  // The invariant that `team` breaks; empty if it breaks none.
  std::string BrokenInvariant(const Team& team) const;

 private:
  std::vector<Worker*> CandidatesByState(bool with_leavers) const;
  std::vector<Worker*> LargestOf(const std::vector<Worker*>& candidates) const;
  // Puts a holder of the newest unsaved state into `team`, or names that state in `saved_first`. `able`: the candidates
  // that may form.
  void KeepUnsaved(const std::vector<Worker*>& candidates, const std::vector<Worker*>& able, Team& team) const;
  // The number of ready workers that are known not to fit into the team. One whose tests are not finished may fit a
  // moment later and does not count.
  uint32_t KnownOutside(const std::vector<Worker*>& candidates, const std::vector<Worker*>& members) const;
  // Moves stragglers to the end of `members`, which is cut off where there are spare workers, unless only they hold the
  // newest state.
  void PutStragglersLast(std::vector<Worker*>& members) const;
  Position PositionOf(const Worker& worker) const;

  Facts facts_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_TEAM_CHOICE_H_
