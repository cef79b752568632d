// Where the time of a recovery goes, from the records of those that lived through it: what a worker did between a fault
// and its first step in a later generation.
//
//   fault ─detect─▶ break ─abort─▶ at rest ─choose─▶ Form ─form─▶ communicator ─sync─▶ state ─step─▶ first step
//
//   detect   until the worker stops computing: its own evidence or the chief's verdict. Where the generation meets at a
//            boundary (a leave, a join) until the last step before it
//   abort    until no thread computes any more; nothing at a boundary
//   choose   until the chief's Form: acknowledgements, doubts about pairs, pauses
//   form     until the communicator stands; sync: until it has the state; step: until it has applied a step
//
// Threading: immutable.
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
  double stood_ms = 0;                                // from the last step before to the first step
  double usual_ms = 0;      // a step of the generation that the fault came to: the median of its last kUsualSteps
  double late_ms = 0;       // the first step came by so much later than had all steps been usual; below 0: earlier
  uint64_t steps_lost = 0;  // applied before and once more after
};
inline constexpr int kUsualSteps = 20;

// That of the first generation which steps after one in which this process stepped when the fault came at `fault_ns`.
// nullopt: the process did not step in a generation then, or in no later one.
std::optional<Recovery> RecoveryOf(const SessionRecord& record, int64_t fault_ns);

// Of a chief that died at `fault_ns` and was started again: until this worker lost its session, then until it had one
// with the new chief. nullopt: it lost none, or found none by `to_ns`.
struct ChiefReturn {
  double detect_ms = 0;
  double return_ms = 0;
};
std::optional<ChiefReturn> ChiefReturnOf(const SessionRecord& record, int64_t fault_ns, int64_t to_ns);

// The longest time between two steps of one generation from `from_ns` to `to_ns`, in milliseconds; 0: no two steps.
double LongestStepMs(const SessionRecord& record, int64_t from_ns, int64_t to_ns);

}  // namespace lockstep::bench

#endif  // LOCKSTEP_TESTS_BENCH_RECOVERY_PHASES_H_
