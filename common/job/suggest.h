// "Did you mean ...": finds the known name that is nearest to an unknown one.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_SUGGEST_H_
#define LOCKSTEP_COMMON_JOB_SUGGEST_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep::job {

// Fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
int EditDistance(absl::string_view a, absl::string_view b);

// The nearest of `names` (the first of several); nullopt when none is near enough: more than a third of the letters, at
// least one and at most three, differ.
std::optional<std::string> Nearest(absl::string_view name, const std::vector<std::string>& names);

// "; did you mean 'lr'?" with the nearest, or "".
std::string DidYouMean(absl::string_view name, const std::vector<std::string>& names);

}  // namespace lockstep::job

#endif  // LOCKSTEP_COMMON_JOB_SUGGEST_H_
