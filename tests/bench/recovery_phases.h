// Splits the time of a recovery into phases, from the records of the surviving workers: what a worker did between a
// fault and its first step in a later generation.
//
//   fault ─detect─▶ break ─abort─▶ at rest ─choose─▶ Form ─form─▶ communicator ─sync─▶ state ─step─▶ first step
//
//   detect   until the worker stops computing: by its own evidence or the chief's verdict. If the generation meets at a
//            boundary (a leave, a join): until the last step before it
//   abort    until no thread computes any more; zero at a boundary
//   choose   until the chief's Form: acknowledgements, tests of doubted pairs, pauses
//   form     until the communicator is connected
//   sync     until the worker has the state
//   step     until it has applied a step
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_TESTS_BENCH_RECOVERY_PHASES_H_
#define LOCKSTEP_TESTS_BENCH_RECOVERY_PHASES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/bench/session_record.h"

namespace lockstep::bench {

inline constexpr std::array<const char*, 6> kPhaseNames = {"detect", "abort", "choose", "form", "sync", "step"};

struct Recovery {
  std::array<double, kPhaseNames.size()> phase_ms{};  // they add up to total_ms
  double total_ms = 0;                                // from the fault to the first step
  double stood_ms = 0;                                // from the last step before the fault to the first step after it
  double usual_ms = 0;                                // median duration of the last kUsualSteps steps before the fault
  double late_ms = 0;       // delay of the first step compared with steps of the usual duration; below 0: earlier
  uint64_t steps_lost = 0;  // applied before the fault and again after it
};
inline constexpr int kUsualSteps = 20;

// The recovery from the fault at `fault_ns` to the first later generation in which this process stepped. nullopt: it
// did not step in a generation at the fault, or in no later one.
std::optional<Recovery> RecoveryOf(const SessionRecord& record, int64_t fault_ns);

// How long this worker took to lose its session with a chief that died at `fault_ns`, and then to have one with the new
// chief. nullopt: it lost none, or found none by `to_ns`.
struct ChiefReturn {
  double detect_ms = 0;
  double return_ms = 0;
};
std::optional<ChiefReturn> ChiefReturnOf(const SessionRecord& record, int64_t fault_ns, int64_t to_ns);

// The longest time between two steps of one generation from `from_ns` to `to_ns`, in milliseconds; 0 if there are no
// two.
double LongestStepMs(const SessionRecord& record, int64_t from_ns, int64_t to_ns);

}  // namespace lockstep::bench

#endif  // LOCKSTEP_TESTS_BENCH_RECOVERY_PHASES_H_
