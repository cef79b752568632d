#include "chief/core/largest_team.h"

#include <algorithm>
#include <bitset>
#include <cstdint>

namespace lockstep::chief {
namespace {

using Mask = uint32_t;
static_assert(kExactTeam <= 32);

// Extends `team` by members of `candidates`, lowest first, so that the first of the largest sets stays.
void Extend(const std::vector<Mask>& reach, Mask team, Mask candidates, Mask& best) {
  const auto size = [](Mask mask) { return std::bitset<32>(mask).count(); };
  if (size(team) > size(best)) best = team;
  while (candidates != 0 && size(team) + size(candidates) > size(best)) {
    const auto next = static_cast<size_t>(__builtin_ctz(candidates));
    candidates &= candidates - 1;
    Extend(reach, team | Mask{1} << next, candidates & reach[next], best);
  }
}

std::vector<size_t> Exactly(const std::vector<size_t>& some, const std::function<bool(size_t, size_t)>& reached) {
  std::vector<Mask> reach(some.size(), 0);
  for (size_t i = 0; i < some.size(); ++i) {
    for (size_t j = 0; j < some.size(); ++j) {
      if (i != j && reached(some[i], some[j])) reach[i] |= Mask{1} << j;
    }
  }
  Mask best = 0;
  Extend(reach, 0, static_cast<Mask>((uint64_t{1} << some.size()) - 1), best);
  std::vector<size_t> team;
  for (size_t i = 0; i < some.size(); ++i) {
    if ((best >> i & 1) != 0) team.push_back(some[i]);
  }
  return team;
}

// The candidate that reaches most others comes first.
std::vector<size_t> Greedily(std::vector<size_t> some, const std::vector<size_t>& degree,
                             const std::function<bool(size_t, size_t)>& reached) {
  std::stable_sort(some.begin(), some.end(), [&](size_t a, size_t b) { return degree[a] > degree[b]; });
  std::vector<size_t> team;
  for (const size_t next : some) {
    if (std::all_of(team.begin(), team.end(), [&](size_t other) { return reached(next, other); })) {
      team.push_back(next);
    }
  }
  return team;
}

}  // namespace

std::vector<size_t> LargestTeam(size_t count, const std::function<bool(size_t, size_t)>& reached) {
  std::vector<size_t> degree(count, 0);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = i + 1; j < count; ++j) {
      if (!reached(i, j)) continue;
      ++degree[i];
      ++degree[j];
    }
  }
  // A candidate that reaches all others belongs to every largest set: only the rest needs a search.
  std::vector<size_t> team;
  std::vector<size_t> some;
  for (size_t i = 0; i < count; ++i) (degree[i] + 1 == count ? team : some).push_back(i);
  const std::vector<size_t> chosen =
      some.size() <= kExactTeam ? Exactly(some, reached) : Greedily(some, degree, reached);
  team.insert(team.end(), chosen.begin(), chosen.end());
  std::sort(team.begin(), team.end());
  return team;
}

}  // namespace lockstep::chief
