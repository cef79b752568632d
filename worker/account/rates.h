// How good works are at what bounds them, and how long one takes. Every number that is no peak of a data sheet stands
// here, with what it was taken from.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_ACCOUNT_RATES_H_
#define LOCKSTEP_WORKER_ACCOUNT_RATES_H_

#include <array>
#include <string>

#include "worker/account/machines.h"
#include "worker/account/tape.h"

namespace lockstep::worker {

// What an account assumes of kernels.
enum class Level : uint8_t {
  kPeak,       // nothing is lost: no step can be faster
  kReachable,  // each is as good as the best that was measured of its sort
  kToday,      // each is as good as it was measured
};
inline constexpr int kLevels = 3;

// Shares of a peak; 0: does not apply.
struct RateFacts {
  const char* name;
  double reachable_operations;
  double today_operations;
  double reachable_bytes;
  double today_bytes;
  const char* source;
};
const RateFacts& FactsOf(Rate rate);

// What passes between works.
struct Overheads {
  double in_graph_us;    // a kernel of a graph begins after the one before it
  double launch_us;      // a kernel that is queued by itself
  double call_us;        // what the host takes to queue one
  double gate_us;        // from the last pass's end until the host has queued the update
  double collective_us;  // a call of NCCL, whatever its size
  double links;          // share of a link's rate
};
Overheads OverheadsAt(Level level);

enum class Bound : uint8_t { kMemory, kMatrixUnits, kFloatUnits, kBus, kLaunch };
const char* BoundName(Bound bound);

struct Price {
  double ms = 0;  // without overheads
  Bound bound = Bound::kMemory;
};
Price PriceOf(const Work& work, const Machine& machine, Level level);

// One bucket's reduction among `workers`, from and to device memory.
double ReductionMs(int64_t elements, bool exact, int workers, const Machine& machine, Level level);
// Bytes that leave a rank for it.
int64_t ReductionBytes(int64_t elements, bool exact, int workers);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_RATES_H_
