// What `lockstep top` shows: the job, its workers in a table, and for whom the others wait. Rows of text that fit a
// screen, whatever the number of workers.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_TOP_VIEW_H_
#define LOCKSTEP_DEPLOY_CLI_TOP_VIEW_H_

#include <cstddef>
#include <string>
#include <vector>

#include "deploy/cli/job_state.h"

namespace lockstep::cli {

enum class TopOrder {
  kName,     // worker-2 before worker-10
  kOwnTime,  // who computes longest, first
  kWaiting,  // who waits longest for the others, first
};

struct TopSettings {
  TopOrder order = TopOrder::kName;
  size_t first = 0;  // the worker at the top, when not all fit
  size_t columns = 80;
  size_t rows = 0;  // of the screen; 0: as many as it takes
  bool colour = false;
  bool keys = false;  // somebody can press them: they are named
};

// The rows, each at most `columns` wide besides its colours, without their ends. `first` becomes the one that is shown
// where it was too large.
std::vector<std::string> TopRows(const JobState& state, TopSettings& settings);

// "the others wait for worker-3: 24% of each step (its own 40.1 ms, theirs 30.2 ms)", or that nobody does, or why the
// job does not step.
std::string WhoWaits(const JobState& state);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TOP_VIEW_H_
