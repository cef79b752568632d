// Tries all schedules of a small scope: one chief, two workers, a job of four steps with a save in the middle.
//
// Chance is replaced by a script. Every delay, and everything else that is drawn, takes the lowest of its values,
// except for at most `late` draws per schedule, which take the highest: such a message arrives after all others, in
// order per connection. At most `kills` times a process is killed, before any event. All choices within these limits
// are tried, each by a replay from the start. Messages to different processes commute: schedules in which every process
// takes in the same events in the same order count once, and are continued once.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_SIMULATION_EXPLORE_H_
#define LOCKSTEP_TESTS_SIMULATION_EXPLORE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::simulation {

struct Scope {
  uint64_t kills = 1;
  uint64_t late = 1;
  // Of the choices that are open in each schedule, only every `stride`-th is tried; 1: all.
  uint64_t stride = 1;
  uint64_t most_runs = UINT64_MAX;
};

struct Explored {
  uint64_t runs = 0;
  uint64_t distinct = 0;              // schedules
  bool exhausted = true;              // the whole scope was tried
  std::vector<std::string> failures;  // the first failures: the choices made and the violation
};

Explored Explore(const Scope& scope);

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_SIMULATION_EXPLORE_H_
