#include "worker/plan/recompute.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

// `depth` layers of two results each, x -> wide -> x': backward reads both. Layer i's results are 2i (wide) and 2i+1.
RecomputeProblem Chain(int depth, int64_t wide, bool cheap) {
  RecomputeProblem problem;
  for (int i = 0; i < depth; ++i) {
    problem.results.push_back({.bytes = wide, .droppable = true});
    problem.results.push_back({.bytes = 10, .droppable = true});
    problem.steps.push_back({.reads = i == 0 ? std::vector<int>{} : std::vector<int>{2 * i - 1},
                             .writes = {2 * i},
                             .scratch = 0,
                             .cheap = cheap});
    problem.steps.push_back({.reads = {2 * i}, .writes = {2 * i + 1}, .scratch = 0, .cheap = false});
  }
  problem.backward = 2 * depth;
  for (int i = depth; i-- > 0;) problem.steps.push_back({.reads = {2 * i, 2 * i + 1}, .writes = {}});
  return problem;
}

TEST_CASE("recompute: a dropped result is written again right before it is read, after what it is made of", "[plan]") {
  const RecomputeProblem problem = Chain(2, 100, false);

  const auto kept = ScheduleSteps(problem, {false, false, false, false});
  const auto one = ScheduleSteps(problem, {true, false, false, false});
  const auto both = ScheduleSteps(problem, {true, true, false, false});

  CHECK(kept.size() == 6);
  CHECK(std::vector<ScheduledStep>(one.begin() + 4, one.end()) ==
        std::vector<ScheduledStep>{{4, false}, {0, true}, {5, false}});
  CHECK(std::vector<ScheduledStep>(both.begin() + 4, both.end()) ==
        std::vector<ScheduledStep>{{4, false}, {0, true}, {1, true}, {5, false}});
}

TEST_CASE("recompute: the peak counts a result twice only while both lives last", "[plan]") {
  const RecomputeProblem problem = Chain(2, 100, false);
  const DroppedResults none(4, false);
  const DroppedResults first = {true, false, false, false};

  CHECK(PeakOf(problem, none, ScheduleSteps(problem, none)) == 220);
  CHECK(PeakOf(problem, first, ScheduleSteps(problem, first)) == 120);
}

TEST_CASE("recompute: blocks lower the peak of a deep chain, and what goes on between them is kept", "[plan]") {
  const RecomputeProblem problem = Chain(16, 100, false);
  const DroppedResults none(32, false);

  const DroppedResults dropped = DropBlocks(problem);

  const int64_t before = PeakOf(problem, none, ScheduleSteps(problem, none));
  CHECK(before == 16 * 110);
  CHECK(PeakOf(problem, dropped, ScheduleSteps(problem, dropped)) * 3 < before);
  // The last block's backward pass begins at once.
  CHECK_FALSE(dropped[30]);
}

TEST_CASE("recompute: cheap results are dropped while that lowers the peak, small ones never", "[plan]") {
  const RecomputeProblem cheap = Chain(4, 100, true);
  const DroppedResults none(8, false);

  const DroppedResults large = DropCheap(cheap, none, 50, 0);

  CHECK(large == DroppedResults{true, false, true, false, true, false, false, false});
  CHECK(DropCheap(cheap, none, 101, 0) == none);
  CHECK(DropCheap(Chain(4, 100, false), none, 50, 0) == none);
}

TEST_CASE("recompute: products are made again after all else, and no more of them than allowed", "[plan]") {
  RecomputeProblem cheap = Chain(4, 100, true);
  const DroppedResults none(8, false);
  cheap.steps[0].operations = 7;
  cheap.steps[2].operations = 7;

  CHECK(DropCheap(cheap, none, 50, 0) == DroppedResults{false, false, false, false, true, false, false, false});
  CHECK(DropCheap(cheap, none, 50, 13) == DroppedResults{true, false, false, false, true, false, false, false});
  CHECK(DropCheap(cheap, none, 50, 14) == DroppedResults{true, false, true, false, true, false, false, false});
}

}  // namespace
}  // namespace lockstep::worker
