// Who can step together, and what a broken generation tells about it (rule 11).
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/core/coordinator.h"
#include "chief/core/largest_team.h"

namespace lockstep::chief {

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
  const std::vector<size_t> chosen = LargestTeam(
      candidates.size(), [&](size_t a, size_t b) { return pairs_.Reached(candidates[a]->id(), candidates[b]->id()); });
  std::vector<Worker*> team;
  for (const size_t index : chosen) team.push_back(candidates[index]);
  return team;
}

Coordinator::Team Coordinator::ChooseTeam(bool with_leavers) {
  const std::vector<Worker*> candidates = CandidatesByState(with_leavers);
  Team team;
  std::vector<Worker*> able;
  for (Worker* worker : candidates) {
    if (pairs_.MayForm(worker->id(), now_)) able.push_back(worker);
    team.in_doubt = team.in_doubt || std::any_of(candidates.begin(), candidates.end(), [&](const Worker* other) {
                      return other != worker && pairs_.InDoubt(worker->id(), other->id(), now_);
                    });
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
    for (Worker* holder : candidates) {
      if (!holds_most(holder)) break;
      const bool is_able = pairs_.MayForm(holder->id(), now_);
      apart = apart && (!is_able || std::any_of(team.members.begin(), team.members.end(), [&](const Worker* member) {
                return pairs_.Apart(holder->id(), member->id());
              }));
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
  uint32_t count = 0;
  for (const Worker* worker : candidates) {
    if (worker->leaving || std::find(members.begin(), members.end(), worker) != members.end()) continue;
    const bool apart = std::any_of(members.begin(), members.end(),
                                   [&](const Worker* member) { return pairs_.Apart(worker->id(), member->id()); });
    count += apart || !pairs_.MayForm(worker->id(), now_) ? 1 : 0;
  }
  return count;
}

// A worker that reached the chief first and reaches no peer must not keep all others from stepping.
bool Coordinator::LargerTeamWaits() {
  std::vector<Worker*> outside;
  for (Worker* worker : roster_.InOrder()) {
    if (!worker->IsReady() || !worker->AtRest() || worker->leaving || !pairs_.MayForm(worker->id(), now_)) continue;
    bool apart = false;
    bool known = true;
    for (const Member& member : current_.members) {
      const bool is_apart = pairs_.Apart(worker->id(), member.incarnation);
      apart = apart || is_apart;
      known = known && (is_apart || pairs_.Reached(worker->id(), member.incarnation));
    }
    if (apart && known) outside.push_back(worker);  // until all is known, it may still fit
  }
  // Spares on both sides make neither side larger.
  const size_t members = current_.members.size();
  return members < Capacity() && outside.size() > members && LargestOf(outside).size() > members;
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
  if (!lost && !named && !formed) {
    // Nobody knows why: every pair proves itself again.
    for (size_t i = 0; i < current_.members.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        pairs_.Suspect(current_.members[i].incarnation, current_.members[j].incarnation, false, now_);
      }
    }
  }
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
