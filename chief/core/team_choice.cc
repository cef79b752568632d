#include "chief/core/team_choice.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/core/states_at_rest.h"

namespace lockstep::chief {
namespace {

std::set<Incarnation> IdsOf(const std::vector<Worker*>& workers) {
  std::set<Incarnation> ids;
  for (const Worker* worker : workers) ids.insert(worker->id());
  return ids;
}

}  // namespace

Position TeamChoice::PositionOf(const Worker& worker) const {
  return HoldsCurrent(facts_.history, worker) ? worker.held->position : Position();
}

std::vector<Worker*> TeamChoice::CandidatesByState(bool with_leavers) const {
  const auto holds = [this](const Worker* worker) { return HoldsCurrent(facts_.history, *worker); };
  std::vector<Worker*> candidates;
  for (Worker* worker : facts_.roster.InOrder()) {
    if (!worker->IsReady() || !worker->AtRest() || worker->dismissed) continue;
    if (!worker->leaving || (with_leavers && holds(worker))) candidates.push_back(worker);
  }
  // Who holds most comes first: of equally large teams one that holds it is chosen.
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Worker* a, const Worker* b) {
    if (holds(a) != holds(b)) return holds(a);
    return holds(a) && a->held->position > b->held->position;
  });
  return candidates;
}

std::vector<Worker*> TeamChoice::LargestOf(const std::vector<Worker*>& candidates) const {
  std::vector<Incarnation> ids;
  for (const Worker* candidate : candidates) ids.push_back(candidate->id());
  std::vector<Worker*> team;
  for (const Incarnation& id : facts_.pairs.LargestTeam(ids)) team.push_back(facts_.roster.Find(id));
  return team;
}

Team TeamChoice::Choose(bool with_leavers) const {
  const std::vector<Worker*> candidates = CandidatesByState(with_leavers);
  Team team;
  std::vector<Worker*> able;
  const std::set<Incarnation> candidate_ids = IdsOf(candidates);
  for (Worker* worker : candidates) {
    if (facts_.pairs.MayForm(worker->id(), facts_.now)) able.push_back(worker);
    team.in_doubt = team.in_doubt || !facts_.pairs.DoubtedAmong(worker->id(), candidate_ids, facts_.now).IsNone();
  }
  team.members = LargestOf(able);
  KeepUnsaved(candidates, able, team);
  for (const Worker* worker : team.members) team.staying += worker->leaving ? 0 : 1;
  team.present = team.staying + KnownOutside(candidates, team.members);
  // Beyond the logical shards there is nothing to compute: spare workers stay warm outside (rule 12).
  PutStragglersLast(team.members);
  if (team.members.size() > facts_.capacity) team.members.resize(facts_.capacity);
  std::sort(team.members.begin(), team.members.end(),
            [](const Worker* a, const Worker* b) { return a->order < b->order; });
  return team;
}

void TeamChoice::KeepUnsaved(const std::vector<Worker*>& candidates, const std::vector<Worker*>& able,
                             Team& team) const {
  // What nobody else holds is not left behind: its holder is in the team, or its state is saved first.
  const bool unsaved = !candidates.empty() && HoldsCurrent(facts_.history, *candidates.front()) &&
                       candidates.front()->held->position.step >= facts_.first_unsaved;
  const auto holds_most = [&](const Worker* worker) {
    return HoldsCurrent(facts_.history, *worker) && worker->held->position == candidates.front()->held->position;
  };
  if (!unsaved || std::any_of(team.members.begin(), team.members.end(), holds_most)) return;
  std::vector<Worker*> with_holder;
  bool apart = true;
  const std::set<Incarnation> member_ids = IdsOf(team.members);
  for (Worker* holder : candidates) {
    if (!holds_most(holder)) break;
    const bool is_able = facts_.pairs.MayForm(holder->id(), facts_.now);
    apart = apart && (!is_able || facts_.pairs.ApartFromSome(holder->id(), member_ids));
    if (!is_able) continue;
    std::vector<Worker*> around = {holder};
    for (Worker* other : able) {
      if (other != holder && facts_.pairs.Reached(holder->id(), other->id())) around.push_back(other);
    }
    around = LargestOf(around);
    if (around.size() > with_holder.size()) with_holder = std::move(around);
  }
  if (apart && std::min(with_holder.size(), facts_.capacity) < std::min(team.members.size(), facts_.capacity)) {
    team.saved_first = candidates.front()->held->position;
  } else {
    team.members = std::move(with_holder);
  }
}

uint32_t TeamChoice::KnownOutside(const std::vector<Worker*>& candidates, const std::vector<Worker*>& members) const {
  if (candidates.size() == members.size()) return 0;
  uint32_t count = 0;
  const std::set<Incarnation> ids = IdsOf(members);
  for (const Worker* worker : candidates) {
    if (worker->leaving || ids.count(worker->id()) != 0) continue;
    const bool outside =
        facts_.pairs.ApartFromSome(worker->id(), ids) || !facts_.pairs.MayForm(worker->id(), facts_.now);
    count += outside ? 1 : 0;
  }
  return count;
}

void TeamChoice::PutStragglersLast(std::vector<Worker*>& members) const {
  if (facts_.stragglers == nullptr || members.size() <= facts_.capacity || !facts_.stragglers->Any()) return;
  const auto straggles = [this](const Worker* worker) { return facts_.stragglers->Straggles(worker->id()); };
  // What only a straggler holds goes on with it.
  Position others, highest;
  for (const Worker* worker : members) {
    highest = std::max(highest, PositionOf(*worker));
    if (!straggles(worker)) others = std::max(others, PositionOf(*worker));
  }
  if (others == highest) std::stable_partition(members.begin(), members.end(), std::not_fn(straggles));
}

bool TeamChoice::LargerTeamWaits(const std::set<Incarnation>& members) const {
  if (members.size() >= facts_.capacity) return false;
  std::vector<Worker*> outside;
  for (Worker* worker : facts_.roster.InOrder()) {
    if (!worker->IsReady() || !worker->AtRest() || worker->leaving) continue;
    if (!facts_.pairs.MayForm(worker->id(), facts_.now)) continue;
    if (!facts_.pairs.ApartFromSome(worker->id(), members)) continue;
    if (facts_.pairs.KnowsAll(worker->id(), members)) outside.push_back(worker);  // else it may still fit
  }
  // Spares on both sides make neither side larger.
  return outside.size() > members.size() && LargestOf(outside).size() > members.size();
}

std::string TeamChoice::BrokenInvariant(const Team& team) const {
  if (team.members.size() > facts_.capacity) {
    return absl::StrCat("a team of ", team.members.size(), " where ", facts_.capacity, " can be used");
  }
  const Worker* before = nullptr;
  for (const Worker* worker : team.members) {
    if (!worker->IsReady() || !worker->AtRest() || worker->dismissed) {
      return absl::StrCat(worker->name(), " is in a team and cannot be a member");
    }
    if (!facts_.pairs.MayForm(worker->id(), facts_.now))
      return absl::StrCat(worker->name(), " is in a team and pauses");
    if (before != nullptr && before->order >= worker->order) return "a team is not in rank order";
    before = worker;
  }
  for (const Worker* one : team.members) {
    for (const Worker* other : team.members) {
      if (one->order < other->order && !facts_.pairs.Reached(one->id(), other->id())) {
        return absl::StrCat(one->name(), " and ", other->name(), " are in a team and do not reach each other");
      }
    }
  }
  return "";
}

}  // namespace lockstep::chief
