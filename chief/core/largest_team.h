// Finds the largest set of workers in which every two reach each other: a maximum clique.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_CHIEF_CORE_LARGEST_TEAM_H_
#define LOCKSTEP_CHIEF_CORE_LARGEST_TEAM_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace lockstep::chief {

// The search is exact for up to this many workers that do not reach all others; with more, it finds a large set that
// may not be the largest.
inline constexpr size_t kExactTeam = 20;

// Returns indexes below `count`, ascending; of equally large sets the one with the earlier members. `reached` is
// symmetric.
std::vector<size_t> LargestTeam(size_t count, const std::function<bool(size_t, size_t)>& reached);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_LARGEST_TEAM_H_
