// The largest set of workers in which every two reach each other.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_CHIEF_CORE_LARGEST_TEAM_H_
#define LOCKSTEP_CHIEF_CORE_LARGEST_TEAM_H_

#include <cstddef>
#include <functional>
#include <vector>

namespace lockstep::chief {

// Up to so many workers that do not reach everybody are looked at exactly; of more, a large set is found that may not
// be the largest.
inline constexpr size_t kExactTeam = 20;

// Indexes below `count`, ascending; of equally large sets the one with the earlier members. `reached` is symmetric.
std::vector<size_t> LargestTeam(size_t count, const std::function<bool(size_t, size_t)>& reached);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_LARGEST_TEAM_H_
