#include "common/job/suggest.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace lockstep::job {

int EditDistance(absl::string_view a, absl::string_view b) {
  const size_t columns = b.size() + 1;
  std::vector<int> d((a.size() + 1) * columns);
  for (size_t i = 0; i <= a.size(); ++i) d[i * columns] = static_cast<int>(i);
  for (size_t j = 0; j <= b.size(); ++j) d[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      int& best = d[i * columns + j];
      best = d[(i - 1) * columns + j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      best = std::min({best, d[(i - 1) * columns + j] + 1, d[i * columns + j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        best = std::min(best, d[(i - 2) * columns + j - 2] + 1);
      }
    }
  }
  return d.back();
}

std::optional<std::string> Nearest(absl::string_view name, const std::vector<std::string>& names) {
  // No name of a job file is longer than this; what is longer is not a slip of the pen.
  if (name.empty() || name.size() > 64) return std::nullopt;
  const int limit = std::clamp(static_cast<int>(name.size()) / 3, 1, 3);
  std::optional<std::string> nearest;
  int distance = limit + 1;
  for (const std::string& candidate : names) {
    const int d = EditDistance(name, candidate);
    if (d < distance) {
      distance = d;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(absl::string_view name, const std::vector<std::string>& names) {
  const std::optional<std::string> nearest = Nearest(name, names);
  return nearest.has_value() ? absl::StrCat("; did you mean '", *nearest, "'?") : "";
}

}  // namespace lockstep::job
