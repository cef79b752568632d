// Which results of the forward pass are not kept for the backward one but computed again in it, and in what order steps
// then run. Pure: sizes and an order in, an order out; plan_recompute.cc turns it into steps.
//
//   kept:    forward f1 f2 f3 | backward b3 b2 b1           all that b1 reads lives from f1 on
//   again:   forward f1 f2 f3 | backward b3 b2 (f1) b1      what only b1 reads lives from (f1) on
//
// A step runs again right before the first that reads a dropped result of it, after those whose dropped results it
// reads itself. It is the same kernel on the same inputs: the bits are the same.
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_WORKER_PLAN_RECOMPUTE_H_
#define LOCKSTEP_WORKER_PLAN_RECOMPUTE_H_

#include <cstdint>
#include <vector>

namespace lockstep::worker {

// Smaller results are not worth a launch.
inline constexpr int64_t kLeastCheapBytes = int64_t{1} << 20;

// Steps in order; results are numbered.
struct RecomputeProblem {
  struct Step {
    std::vector<int> reads;
    std::vector<int> writes;
    int64_t scratch = 0;
    bool cheap = false;      // takes little more time than copying its results
    int64_t operations = 0;  // of a product; 0 for what only moves through its operands
  };
  struct Result {
    int64_t bytes = 0;
    bool droppable = false;  // one step writes it, a later one may write it anew
    bool kept = false;       // alive until the end once it was written
  };
  std::vector<Step> steps;
  std::vector<Result> results;
  int backward = 0;  // the first step of the backward pass
};

struct ScheduledStep {
  int step = 0;
  bool again = false;
  friend bool operator==(const ScheduledStep&, const ScheduledStep&) = default;
};

// By result.
using DroppedResults = std::vector<bool>;

// The order in which steps run when `dropped` results are not kept. REQUIRES: dropped results are droppable.
std::vector<ScheduledStep> ScheduleSteps(const RecomputeProblem& problem, const DroppedResults& dropped);

// The largest sum of bytes alive at once in that order.
int64_t PeakOf(const RecomputeProblem& problem, const DroppedResults& dropped,
               const std::vector<ScheduledStep>& schedule);

// Cuts the forward pass into blocks where few bytes go on to later blocks: those are kept, what lies within every block
// but the last is dropped. The number of blocks is that with the lowest peak; all false where nothing is gained.
DroppedResults DropBlocks(const RecomputeProblem& problem);

// Drops, beyond `dropped`, what cheap steps compute again from what is kept, as long as the peak falls: largest first,
// none below `least_bytes`, those that take products last, and of products not more than `most_operations`.
DroppedResults DropCheap(const RecomputeProblem& problem, DroppedResults dropped, int64_t least_bytes,
                         int64_t most_operations);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_RECOMPUTE_H_
