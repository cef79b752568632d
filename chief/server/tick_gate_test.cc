#include "chief/server/tick_gate.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

HeartbeatReceived BeatOf(ChiefHarness& chief, int index) {
  const FakeWorker& worker = chief.worker(index);
  return {WorkerFence{"job-1", worker.term, worker.id}, {worker.phase, worker.progress, worker.position}};
}

// The queue of a chief's loop on the clock of the test: worker i beats every 500 ms from `phases[i]` on. Whoever waits
// lets the time pass.
class Beats {
 public:
  Beats(ChiefHarness& chief, const std::map<int, absl::Duration>& phases) : chief_(chief) {
    for (const auto& [index, phase] : phases) next_[index] = chief.now() + phase;
  }
  size_t size() {
    for (auto& [index, when] : next_) {
      for (; when <= chief_.now(); when += absl::Milliseconds(500)) queue_.push_back(index);
    }
    return queue_.size();
  }
  std::optional<int> Pop(absl::Duration wait) {
    if (size() == 0) {
      absl::Time wake = chief_.now() + wait;
      for (const auto& [index, when] : next_) wake = std::min(wake, when);
      chief_.Pause(wake - chief_.now());
    }
    if (size() == 0) return std::nullopt;
    const int index = queue_.front();
    queue_.pop_front();
    return index;
  }

 private:
  ChiefHarness& chief_;
  std::map<int, absl::Time> next_;
  std::deque<int> queue_;
};

void Turn(ChiefHarness& chief, const std::map<int, absl::Duration>& phases, absl::Time end) {
  TickGate gate;
  Beats beats(chief, phases);
  while (chief.now() < end) {
    gate.TakeTurn(
        chief.now(), chief.NextDeadline(), beats, [&](int index) { chief.Do(BeatOf(chief, index)); },
        [&] { chief.Do(Tick{}); });
  }
}

// A queue that holds so many inputs, and gets as many again with each that is taken.
struct Flood {
  size_t size() const { return queued; }
  std::optional<int> Pop(absl::Duration wait) {
    waits.push_back(wait);
    queued += each;
    return queued == each ? std::nullopt : std::optional<int>(static_cast<int>(queued--));
  }
  size_t queued = 0;
  size_t each = 0;
  std::vector<absl::Duration> waits;
};

TEST_CASE("tick gate: a silent member is noticed in time, whatever the phases of the others", "[loop]") {
  const auto apart = GENERATE(absl::ZeroDuration(), absl::Milliseconds(1), absl::Milliseconds(90),
                              absl::Milliseconds(125), absl::Milliseconds(166), absl::Milliseconds(499));
  ChiefHarness chief({.workers = 4});
  REQUIRE(chief.phase() == Phase::kRunning);
  const absl::Duration limit = chief.config().policy.heartbeat_limit;

  Turn(chief, {{0, apart}, {1, 2 * apart}, {2, 3 * apart}}, chief.now() + limit + absl::Seconds(1));

  CHECK_THAT(chief.Last<WorkerChanged>().reason, Contains("silent"));
  CHECK(chief.Last<WorkerChanged>().name == "worker-3");
  CHECK(chief.View().workers.size() == 3);
}

TEST_CASE("tick gate: what came before a deadline is handled before it is judged, what comes later is not", "[loop]") {
  const size_t each = GENERATE(size_t{0}, size_t{1}, size_t{7});
  const absl::Time due = absl::FromUnixSeconds(100);
  TickGate gate;
  Flood inputs{.queued = 5, .each = each};
  size_t handled = 0;
  bool ticked = false;
  const auto take_turn = [&](absl::Time now) {
    gate.TakeTurn(
        now, due, inputs, [&](int) { ++handled; }, [&] { ticked = true; });
  };

  // Before the deadline: every input, and a wait that ends with it.
  take_turn(due - absl::Seconds(1));
  CHECK(handled == 1);
  CHECK(inputs.waits.back() == absl::Seconds(1));
  const size_t queued = inputs.queued;
  while (!ticked) take_turn(due);

  CHECK(handled == 1 + queued);
  CHECK(inputs.waits.back() == absl::ZeroDuration());
}

TEST_CASE("tick gate: where nothing is queued the deadline is judged at once", "[loop]") {
  TickGate gate;
  Flood inputs;
  bool ticked = false;

  gate.TakeTurn(
      absl::FromUnixSeconds(100), absl::FromUnixSeconds(100), inputs, [](int) {}, [&] { ticked = true; });

  CHECK(ticked);
  CHECK(inputs.waits.empty());
}

}  // namespace
}  // namespace lockstep::chief
