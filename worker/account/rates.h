// The efficiency of each kind of kernel, as a share of the machine's peak, and the time of one kernel that follows
// (roofline model). Every number that is not a peak from a data sheet stands here, with its source.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_ACCOUNT_RATES_H_
#define LOCKSTEP_WORKER_ACCOUNT_RATES_H_

#include <array>
#include <string>

#include "worker/account/machines.h"
#include "worker/account/tape.h"

namespace lockstep::worker {

// How efficient an account assumes the kernels to be.
enum class Level : uint8_t {
  kPeak,       // all run at the machine's peak, without overheads: a lower bound of the step time
  kReachable,  // each runs at the best rate that was measured of its kind
  kToday,      // each runs at the rate that was measured for it
};
inline constexpr int kLevels = 3;

// Shares of the machine's peak in operations and in memory bytes; 0: does not apply.
struct RateFacts {
  const char* name;
  double reachable_operations;
  double today_operations;
  double reachable_bytes;
  double today_bytes;
  const char* source;
};
const RateFacts& FactsOf(Rate rate);

// Latencies and losses besides the kernels themselves.
struct Overheads {
  double in_graph_us;    // the gap between two kernels of a replayed graph
  double launch_us;      // the gap before a kernel that is launched by itself
  double call_us;        // host time to queue one launch or replay
  double gate_us;        // from the end of the last pass until the host has queued the update
  double collective_us;  // latency of one NCCL call, whatever its size
  double links;          // achieved share of a link's rate
};
Overheads OverheadsAt(Level level);

enum class Bound : uint8_t { kMemory, kMatrixUnits, kFloatUnits, kBus, kLaunch };
const char* BoundName(Bound bound);

struct Price {
  double ms = 0;  // without Overheads
  Bound bound = Bound::kMemory;
};
Price PriceOf(const Work& work, const Machine& machine, Level level);

// The time to reduce one bucket among `workers`, from and to device memory. `exact`: reduce-scatter of int64 sums, then
// all-gather of float32; else an all-reduce of float32.
double ReductionMs(int64_t elements, bool exact, int workers, const Machine& machine, Level level);
// The bytes that one rank sends for that reduction.
int64_t ReductionBytes(int64_t elements, bool exact, int workers);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_RATES_H_
