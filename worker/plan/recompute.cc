#include "worker/plan/recompute.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace lockstep::worker {
namespace {

constexpr int kMostBlocks = 64;

size_t At(int index) { return static_cast<size_t>(index); }

// By result: the step that writes it first, -1 for none.
std::vector<int> Producers(const RecomputeProblem& problem) {
  std::vector<int> producers(problem.results.size(), -1);
  for (size_t i = problem.steps.size(); i-- > 0;) {
    for (const int result : problem.steps[i].writes) producers[At(result)] = static_cast<int>(i);
  }
  return producers;
}

// By result: whether the backward pass reads it and the forward pass writes it.
std::vector<bool> Saved(const RecomputeProblem& problem, const std::vector<int>& producers) {
  std::vector<bool> saved(problem.results.size(), false);
  for (size_t i = At(problem.backward); i < problem.steps.size(); ++i) {
    for (const int result : problem.steps[i].reads) {
      saved[At(result)] = producers[At(result)] >= 0 && producers[At(result)] < problem.backward;
    }
  }
  return saved;
}

class Scheduler {
 public:
  Scheduler(const RecomputeProblem& problem, const DroppedResults& dropped)
      : problem_(problem), dropped_(dropped), producers_(Producers(problem)), there_(problem.results.size(), false) {}

  std::vector<ScheduledStep> Run() {
    for (int i = 0; i < static_cast<int>(problem_.steps.size()); ++i) {
      if (i >= problem_.backward) {
        for (const int result : problem_.steps[At(i)].reads) Ensure(result);
      }
      order_.push_back({i, false});
    }
    return std::move(order_);
  }

 private:
  // Depth first without recursion: chains are as long as a model is deep.
  void Ensure(int result) {
    std::vector<int> open = {result};
    while (!open.empty()) {
      const int wanted = open.back();
      if (!dropped_[At(wanted)] || there_[At(wanted)]) {
        open.pop_back();
        continue;
      }
      const RecomputeProblem::Step& step = problem_.steps[At(producers_[At(wanted)])];
      const size_t before = open.size();
      for (const int read : step.reads) {
        if (dropped_[At(read)] && !there_[At(read)]) open.push_back(read);
      }
      if (open.size() > before) continue;
      order_.push_back({producers_[At(wanted)], true});
      for (const int written : step.writes) there_[At(written)] = true;
      open.pop_back();
    }
  }

  const RecomputeProblem& problem_;
  const DroppedResults& dropped_;
  const std::vector<int> producers_;
  std::vector<bool> there_;
  std::vector<ScheduledStep> order_;
};

// Bytes that go on from before each forward step to it or later ones.
std::vector<int64_t> CrossingBytes(const RecomputeProblem& problem, const std::vector<int>& producers,
                                   const std::vector<int>& last_read) {
  std::vector<int64_t> change(At(problem.backward) + 2, 0);
  for (size_t r = 0; r < problem.results.size(); ++r) {
    if (!problem.results[r].droppable || producers[r] < 0 || last_read[r] <= producers[r]) continue;
    change[At(producers[r]) + 1] += problem.results[r].bytes;
    change[At(last_read[r]) + 1] -= problem.results[r].bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  return change;
}

// By result: the last forward step that reads it, -1 for none.
std::vector<int> LastForwardReads(const RecomputeProblem& problem) {
  std::vector<int> last(problem.results.size(), -1);
  for (int i = 0; i < problem.backward; ++i) {
    for (const int result : problem.steps[At(i)].reads) last[At(result)] = i;
  }
  return last;
}

}  // namespace

std::vector<ScheduledStep> ScheduleSteps(const RecomputeProblem& problem, const DroppedResults& dropped) {
  return Scheduler(problem, dropped).Run();
}

int64_t PeakOf(const RecomputeProblem& problem, const DroppedResults& dropped,
               const std::vector<ScheduledStep>& schedule) {
  struct Life {
    int first = -1;
    int last = -1;
  };
  // As computed first, and again.
  std::vector<Life> lives[2] = {std::vector<Life>(problem.results.size()), std::vector<Life>(problem.results.size())};
  std::vector<int64_t> change(schedule.size() + 1, 0);
  for (size_t at = 0; at < schedule.size(); ++at) {
    const auto [index, again] = schedule[at];
    const RecomputeProblem::Step& step = problem.steps[At(index)];
    const auto touch = [&](int result, bool second) {
      Life& life = lives[second ? 1 : 0][At(result)];
      if (life.first < 0) life.first = static_cast<int>(at);
      life.last = static_cast<int>(at);
    };
    for (const int result : step.reads) touch(result, dropped[At(result)] && (again || index >= problem.backward));
    for (const int result : step.writes) touch(result, again);
    change[at] += step.scratch;
    change[at + 1] -= step.scratch;
  }
  for (const auto& each : lives) {
    for (size_t r = 0; r < each.size(); ++r) {
      if (each[r].first < 0) continue;
      change[At(each[r].first)] += problem.results[r].bytes;
      change[problem.results[r].kept ? schedule.size() : At(each[r].last) + 1] -= problem.results[r].bytes;
    }
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  return *std::max_element(change.begin(), change.end());
}

DroppedResults DropBlocks(const RecomputeProblem& problem) {
  const std::vector<int> producers = Producers(problem);
  const std::vector<int> last_read = LastForwardReads(problem);
  const std::vector<bool> saved = Saved(problem, producers);
  const std::vector<int64_t> crossing = CrossingBytes(problem, producers, last_read);
  std::vector<int64_t> saved_by(At(problem.backward), 0);  // bytes that each forward step leaves to backward
  for (size_t r = 0; r < problem.results.size(); ++r) {
    if (saved[r]) saved_by[At(producers[r])] += problem.results[r].bytes;
  }
  const int64_t all = std::accumulate(saved_by.begin(), saved_by.end(), int64_t{0});
  DroppedResults best(problem.results.size(), false);
  int64_t lowest = PeakOf(problem, best, ScheduleSteps(problem, best));
  for (int blocks = 2; blocks <= kMostBlocks; ++blocks) {
    // A block ends at the narrowest place between half of its share and the whole of it.
    std::vector<int> block_of(At(problem.backward), 0);
    int64_t within = 0;
    int block = 0;
    int narrowest = -1;
    for (int i = 0; i < problem.backward; ++i) {
      within += saved_by[At(i)];
      block_of[At(i)] = block;
      if (within * blocks < all / 2) continue;
      if (narrowest < 0 || crossing[At(i) + 1] <= crossing[At(narrowest) + 1]) narrowest = i;
      if (within * blocks < all) continue;
      ++block;
      within = 0;
      for (int later = narrowest + 1; later <= i; ++later) {
        block_of[At(later)] = block;
        within += saved_by[At(later)];
      }
      narrowest = -1;
    }
    const int last_block = block_of.empty() ? 0 : block_of.back();
    DroppedResults dropped(problem.results.size(), false);
    for (size_t r = 0; r < problem.results.size(); ++r) {
      if (!problem.results[r].droppable || producers[r] < 0 || producers[r] >= problem.backward) continue;
      const int own = block_of[At(producers[r])];
      dropped[r] = own < last_block && (last_read[r] < 0 || block_of[At(last_read[r])] == own);
    }
    const int64_t peak = PeakOf(problem, dropped, ScheduleSteps(problem, dropped));
    if (peak >= lowest) continue;
    lowest = peak;
    best = std::move(dropped);
  }
  return best;
}

DroppedResults DropCheap(const RecomputeProblem& problem, DroppedResults dropped, int64_t least_bytes,
                         int64_t most_operations) {
  const std::vector<int> producers = Producers(problem);
  const std::vector<bool> saved = Saved(problem, producers);
  std::vector<size_t> candidates;
  const auto droppable = [&](size_t r) {
    return problem.results[r].droppable && producers[r] >= 0 && producers[r] < problem.backward &&
           problem.steps[At(producers[r])].cheap && !dropped[r];
  };
  for (size_t r = 0; r < problem.results.size(); ++r) {
    if (saved[r] && droppable(r) && problem.results[r].bytes >= least_bytes) candidates.push_back(r);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](size_t a, size_t b) { return problem.results[a].bytes > problem.results[b].bytes; });
  int64_t lowest = PeakOf(problem, dropped, ScheduleSteps(problem, dropped));
  const auto attempt = [&](size_t candidate, bool products) {
    DroppedResults tried = dropped;
    int64_t operations = 0;
    // With it what it is made of, as far as nobody keeps that anyway.
    std::vector<size_t> open = {candidate};
    while (!open.empty()) {
      const size_t r = open.back();
      open.pop_back();
      if (!tried[r]) operations += problem.steps[At(producers[r])].operations;
      tried[r] = true;
      for (const int read : problem.steps[At(producers[r])].reads) {
        if (!saved[At(read)] && !tried[At(read)] && droppable(At(read))) open.push_back(At(read));
      }
    }
    if ((operations > 0) != products || operations > most_operations) return;
    const int64_t peak = PeakOf(problem, tried, ScheduleSteps(problem, tried));
    if (peak >= lowest) return;
    lowest = peak;
    most_operations -= operations;
    dropped = std::move(tried);
  };
  for (const size_t candidate : candidates) attempt(candidate, false);
  for (const size_t candidate : candidates) {
    if (!dropped[candidate]) attempt(candidate, true);
  }
  return dropped;
}

}  // namespace lockstep::worker
