// Who can step together, and what a broken generation tells about it (rule 11).
#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/core/coordinator.h"

namespace lockstep::chief {
namespace {

std::set<Incarnation> IdsOf(const std::vector<Worker*>& workers) {
  std::set<Incarnation> ids;
  for (const Worker* worker : workers) ids.insert(worker->id());
  return ids;
}

}  // namespace

std::vector<Worker*> Coordinator::CandidatesByState(bool with_leavers) {
  std::vector<Worker*> candidates;
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->IsReady() || !worker->AtRest() || worker->dismissed) continue;
    if (!worker->leaving || (with_leavers && HoldsCurrent(*worker))) candidates.push_back(worker);
  }
  // Who holds most comes first: of equally large teams one that holds it is chosen.
  std::stable_sort(candidates.begin(), candidates.end(), [this](const Worker* a, const Worker* b) {
    if (HoldsCurrent(*a) != HoldsCurrent(*b)) return HoldsCurrent(*a);
    return HoldsCurrent(*a) && a->held->position > b->held->position;
  });
  return candidates;
}

std::vector<Worker*> Coordinator::LargestOf(const std::vector<Worker*>& candidates) {
  std::vector<Incarnation> ids;
  for (const Worker* candidate : candidates) ids.push_back(candidate->id());
  std::vector<Worker*> team;
  for (const Incarnation& id : pairs_.LargestTeam(ids)) team.push_back(roster_.Find(id));
  return team;
}

Coordinator::Team Coordinator::ChooseTeam(bool with_leavers) {
  const std::vector<Worker*> candidates = CandidatesByState(with_leavers);
  Team team;
  std::vector<Worker*> able;
  const std::set<Incarnation> candidate_ids = IdsOf(candidates);
  for (Worker* worker : candidates) {
    if (pairs_.MayForm(worker->id(), now_)) able.push_back(worker);
    team.in_doubt = team.in_doubt || !pairs_.DoubtedAmong(worker->id(), candidate_ids, now_).IsNone();
  }
  team.members = LargestOf(able);

  // What nobody else holds is not left behind: its holder is in the team, or its state is saved first.
  const bool unsaved = !candidates.empty() && HoldsCurrent(*candidates.front()) &&
                       saves_.IsNewer(candidates.front()->held->position.step);
  const auto holds_most = [&](const Worker* worker) {
    return HoldsCurrent(*worker) && worker->held->position == candidates.front()->held->position;
  };
  if (unsaved && std::none_of(team.members.begin(), team.members.end(), holds_most)) {
    std::vector<Worker*> with_holder;
    bool apart = true;
    const std::set<Incarnation> member_ids = IdsOf(team.members);
    for (Worker* holder : candidates) {
      if (!holds_most(holder)) break;
      const bool is_able = pairs_.MayForm(holder->id(), now_);
      apart = apart && (!is_able || pairs_.ApartFromSome(holder->id(), member_ids));
      if (!is_able) continue;
      std::vector<Worker*> around = {holder};
      for (Worker* other : able) {
        if (other != holder && pairs_.Reached(holder->id(), other->id())) around.push_back(other);
      }
      around = LargestOf(around);
      if (around.size() > with_holder.size()) with_holder = std::move(around);
    }
    if (apart && std::min(with_holder.size(), Capacity()) < std::min(team.members.size(), Capacity())) {
      team.saved_first = candidates.front()->held->position;
    } else {
      team.members = std::move(with_holder);
    }
  }
  for (const Worker* worker : team.members) team.staying += worker->leaving ? 0 : 1;
  team.present = team.staying + KnownOutside(candidates, team.members);
  // Beyond the logical shards there is nothing to compute: spare workers stay warm outside (rule 12).
  PutStragglersLast(team.members);
  if (team.members.size() > Capacity()) team.members.resize(Capacity());
  std::sort(team.members.begin(), team.members.end(),
            [](const Worker* a, const Worker* b) { return a->order < b->order; });
  return team;
}

// Those that are ready and cannot be in the team now. Who has not met all of it yet may be in it a moment later.
uint32_t Coordinator::KnownOutside(const std::vector<Worker*>& candidates, const std::vector<Worker*>& members) {
  if (candidates.size() == members.size()) return 0;
  uint32_t count = 0;
  const std::set<Incarnation> ids = IdsOf(members);
  for (const Worker* worker : candidates) {
    if (worker->leaving || ids.count(worker->id()) != 0) continue;
    count += pairs_.ApartFromSome(worker->id(), ids) || !pairs_.MayForm(worker->id(), now_) ? 1 : 0;
  }
  return count;
}

// A worker that reached the chief first and reaches no peer must not keep all others from stepping.
bool Coordinator::LargerTeamWaits() {
  const size_t members = current_.members.size();
  if (members >= Capacity()) return false;
  std::vector<Worker*> outside;
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->IsReady() || !worker->AtRest() || worker->leaving || !pairs_.MayForm(worker->id(), now_)) continue;
    if (!pairs_.ApartFromSome(worker->id(), current_.ids)) continue;
    if (pairs_.KnowsAll(worker->id(), current_.ids)) outside.push_back(worker);  // else it may still fit
  }
  // Spares on both sides make neither side larger.
  return outside.size() > members && LargestOf(outside).size() > members;
}

// Every member is at rest or given up: what they said of each other is weighed, and how soon to try again.
void Coordinator::ConcludeBreak() {
  if (!current_.broken) {  // met at a boundary: what failed before works now
    return backoff_.Concluded(/*fruitless=*/false, now_);
  }
  const bool lost = std::any_of(current_.members.begin(), current_.members.end(),
                                [&](const Member& member) { return roster_.Find(member.incarnation) == nullptr; });
  const bool formed = current_.formed.size() == current_.members.size();
  // What both of a pair say of each other is one failure.
  std::map<std::pair<Incarnation, Incarnation>, bool> suspected;  // → whether while forming
  for (const Accusation& accusation : current_.accused) {
    if (roster_.Find(accusation.by) == nullptr || roster_.Find(accusation.suspect) == nullptr) continue;
    if (lost && accusation.by != accusation.suspect) continue;  // a death explains what its witnesses say
    bool& while_forming = suspected[std::minmax(accusation.by, accusation.suspect)];
    while_forming = while_forming || accusation.while_forming;
  }
  for (const auto& [pair, while_forming] : suspected) {
    if (pair.first == pair.second) {
      pairs_.SuspectItself(pair.first, now_);
    } else {
      pairs_.Suspect(pair.first, pair.second, while_forming, now_);
    }
  }
  const bool named = !suspected.empty();
  if (!lost && !named && !formed) pairs_.SuspectAll(current_.ids, now_);
  const bool stepped = progress_.agreed() > current_.agreed;
  backoff_.Concluded(!stepped && !lost, now_);
  current_.broken = false;
  current_.accused.clear();
}

bool Coordinator::EndPauseFor(const Team& team) {
  return std::any_of(team.members.begin(), team.members.end(), [this](const Worker* worker) {
    return !current_.Has(worker->id()) && backoff_.EndEarly(worker->name(), now_);
  });
}

}  // namespace lockstep::chief
