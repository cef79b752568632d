// Formats the screen of `lockstep top`: the job, a table of its workers, and for which worker the others wait. The rows
// fit the screen, whatever the number of workers.
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
  kOwnTime,  // the worker that computes longest first
  kWaiting,  // the worker that waits longest first
};

struct TopSettings {
  TopOrder order = TopOrder::kName;
  size_t first = 0;  // the index of the first worker shown, if not all fit
  size_t columns = 80;
  size_t rows = 0;  // of the screen; 0: no limit
  bool colour = false;
  bool keys = false;  // whether keys work: the screen then lists them
};

// The rows, each at most `columns` wide without its colour codes, without newlines. If `first` is too large, it becomes
// the index that is shown.
std::vector<std::string> TopRows(const JobState& state, TopSettings& settings);

// "the others wait for worker-3: 24% of each step (its own 40.1 ms, theirs 30.2 ms)", or that none waits, or why the
// job does not step.
std::string WhoWaits(const JobState& state);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TOP_VIEW_H_
