#include "worker/session/turn_queue.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLong = absl::Minutes(5);

// Gives another thread every chance to set `flag`, which it must not.
bool IsSetMeanwhile(const std::atomic<bool>& flag) {
  for (int i = 0; i < 5000 && !flag; ++i) std::this_thread::yield();
  return flag;
}

TEST_CASE("turn queue: a turn at once is refused while another is under way or a value waits", "[session]") {
  TurnQueue<int> queue(8);
  REQUIRE(queue.BeginAtOnce());
  CHECK_FALSE(queue.BeginAtOnce());
  queue.Push(1);
  queue.End(/*interrupt=*/false);
  CHECK_FALSE(queue.BeginAtOnce());
  CHECK(queue.Begin(kLong) == 1);
  CHECK_FALSE(queue.BeginAtOnce());
  queue.End(/*interrupt=*/false);
  CHECK(queue.BeginAtOnce());
  queue.End(/*interrupt=*/false);
}

TEST_CASE("turn queue: a turn without a value begins after the time, or at once after an interrupt", "[session]") {
  TurnQueue<int> queue(8);
  CHECK_FALSE(queue.Begin(absl::ZeroDuration()).has_value());
  queue.End(/*interrupt=*/true);
  CHECK_FALSE(queue.Begin(kLong).has_value());
  queue.End(/*interrupt=*/false);
  queue.Push(2);
  CHECK(queue.Begin(kLong) == 2);
  queue.End(/*interrupt=*/false);
}

TEST_CASE("turn queue: whoever waits for a turn gets one when another thread's ends, with and without a value",
          "[session]") {
  const bool pushes = GENERATE(true, false);
  TurnQueue<int> queue(8);
  REQUIRE(queue.BeginAtOnce());
  std::atomic<bool> begun{false};
  std::optional<int> value;
  std::thread waiting([&] {
    value = queue.Begin(pushes ? kLong : absl::ZeroDuration());
    begun = true;
    queue.End(/*interrupt=*/false);
  });
  if (pushes) queue.Push(3);
  CHECK_FALSE(IsSetMeanwhile(begun));
  queue.End(/*interrupt=*/false);
  waiting.join();
  CHECK(value == (pushes ? std::optional<int>(3) : std::nullopt));
}

TEST_CASE("turn queue: closing waits for the turn under way, and then none begins at once", "[session]") {
  TurnQueue<int> queue(8);
  REQUIRE(queue.BeginAtOnce());
  std::atomic<bool> closed{false};
  std::thread closing([&] {
    queue.Close();
    closed = true;
  });
  CHECK_FALSE(IsSetMeanwhile(closed));
  queue.End(/*interrupt=*/false);
  closing.join();
  CHECK_FALSE(queue.BeginAtOnce());
}

// What each producer brings, in turns of its own or of the queue's thread, in the order in which it brought it. `last`
// has no lock: turns follow each other.
TEST_CASE("turn queue: values of one thread are handled in their order, one at a time", "[session]") {
  constexpr int kProducers = 3, kValues = 20000;
  TurnQueue<std::pair<int, int>> queue(64);
  std::vector<int> last(kProducers, -1);
  int handled = 0, disordered = 0, at_once = 0;
  const auto handle = [&](std::pair<int, int> value) {
    disordered += value.second == last[static_cast<size_t>(value.first)] + 1 ? 0 : 1;
    last[static_cast<size_t>(value.first)] = value.second;
    ++handled;
  };
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (int v = 0; v < kValues; ++v) {
        if (!queue.BeginAtOnce()) {
          queue.Push({p, v});
          continue;
        }
        handle({p, v});
        ++at_once;
        queue.End(/*interrupt=*/handled == kProducers * kValues);
      }
    });
  }
  for (bool done = false; !done;) {
    const auto value = queue.Begin(kLong);
    if (value.has_value()) handle(*value);
    done = handled == kProducers * kValues;
    queue.End(/*interrupt=*/false);
  }
  for (std::thread& producer : producers) producer.join();
  CHECK(disordered == 0);
  CHECK(at_once > 0);
}

}  // namespace
}  // namespace lockstep::worker
