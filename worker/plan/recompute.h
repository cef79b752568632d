// Activation checkpointing: chooses the results of the forward pass that are dropped and recomputed in the backward
// pass, and the resulting order of steps. Pure: takes sizes and an order, returns an order; plan_recompute.cc makes
// steps of it.
//
//   kept:        forward f1 f2 f3 | backward b3 b2 b1           the results of f1 that b1 reads are alive from f1 on
//   recomputed:  forward f1 f2 f3 | backward b3 b2 (f1) b1      results that only b1 reads are alive from (f1) on
//
// A step is repeated right before the first reader of one of its dropped results, after the steps whose dropped results
// it reads itself. It runs the same kernel on the same inputs and gives the same bits.
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_WORKER_PLAN_RECOMPUTE_H_
#define LOCKSTEP_WORKER_PLAN_RECOMPUTE_H_

#include <cstdint>
#include <vector>

namespace lockstep::worker {

// Smaller results are not worth another launch.
inline constexpr int64_t kLeastCheapBytes = int64_t{1} << 20;

// The steps of a pass in order; results are identified by index.
struct RecomputeProblem {
  struct Step {
    std::vector<int> reads;
    std::vector<int> writes;
    int64_t scratch = 0;
    bool cheap = false;      // takes little more time than copying its results
    int64_t operations = 0;  // of a product; 0 for a step whose time is its memory traffic
  };
  struct Result {
    int64_t bytes = 0;
    bool droppable = false;  // written by one step, which may be repeated
    bool kept = false;       // alive until the end once written
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

// Indexed by result.
using DroppedResults = std::vector<bool>;

// The order of steps when the `dropped` results are recomputed. REQUIRES: dropped results are droppable.
std::vector<ScheduledStep> ScheduleSteps(const RecomputeProblem& problem, const DroppedResults& dropped);

// The largest sum of bytes that are alive at the same time in that order.
int64_t PeakOf(const RecomputeProblem& problem, const DroppedResults& dropped,
               const std::vector<ScheduledStep>& schedule);

// Cuts the forward pass into blocks at places where few bytes are passed on: these are kept, and all other results of
// every block but the last are dropped. Takes the number of blocks with the lowest peak; all false if none lowers it.
DroppedResults DropBlocks(const RecomputeProblem& problem);

// Drops further results that cheap steps can recompute from kept ones, as long as the peak falls: the largest first,
// none below `least_bytes`; results that need products come last, with at most `most_operations` in all.
DroppedResults DropCheap(const RecomputeProblem& problem, DroppedResults dropped, int64_t least_bytes,
                         int64_t most_operations);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_RECOMPUTE_H_
