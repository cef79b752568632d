#include "chief/server/live_line.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace lockstep::chief {

std::string FitLine(std::vector<LinePart> parts, int columns) {
  const size_t width = static_cast<size_t>(std::max(columns, 0));
  for (;;) {
    const std::string line =
        absl::StrJoin(parts, "  ", [](std::string* out, const LinePart& part) { out->append(part.text); });
    if (line.size() <= width || parts.size() <= 1) return line.substr(0, width);
    parts.erase(std::min_element(parts.begin(), parts.end(),
                                 [](const LinePart& a, const LinePart& b) { return a.weight < b.weight; }));
  }
}

}  // namespace lockstep::chief
