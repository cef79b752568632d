// Fits the progress line of a terminal to its width: the least important part goes first.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_SERVER_LIVE_LINE_H_
#define LOCKSTEP_CHIEF_SERVER_LIVE_LINE_H_

#include <string>
#include <vector>

namespace lockstep::chief {

struct LinePart {
  std::string text;
  int weight = 0;  // the lightest part is left out first
};

// Joins the parts in their order, two spaces apart: as many as fit into `columns`, and at least the heaviest,
// truncated.
std::string FitLine(std::vector<LinePart> parts, int columns);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_LIVE_LINE_H_
