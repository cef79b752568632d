#include "chief/core/break_finding.h"

#include <algorithm>
#include <map>
#include <utility>

namespace lockstep::chief {

BreakFinding Weigh(const std::vector<Accusation>& accusations, Roster& roster, bool lost, bool formed) {
  // Mutual accusations of a pair count as one failure.
  std::map<std::pair<Incarnation, Incarnation>, bool> suspected;  // → whether while forming
  for (const Accusation& accusation : accusations) {
    if (roster.Find(accusation.by) == nullptr || roster.Find(accusation.suspect) == nullptr) continue;
    if (lost && accusation.by != accusation.suspect) continue;
    bool& while_forming = suspected[std::minmax(accusation.by, accusation.suspect)];
    while_forming = while_forming || accusation.while_forming;
  }
  BreakFinding finding;
  for (const auto& [pair, while_forming] : suspected) {
    finding.suspicions.push_back({pair.first, pair.second, while_forming});
  }
  finding.all_in_doubt = !lost && !formed && suspected.empty();
  return finding;
}

}  // namespace lockstep::chief
