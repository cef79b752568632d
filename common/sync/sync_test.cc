#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "common/liveness/serial_executor.h"
#include "common/sync/mutex.h"
#include "common/sync/pulse.h"
#include "common/sync/queue.h"
#include "common/sync/signal_thread.h"
#include "common/sync/stop_signals.h"

namespace lockstep {
namespace {

TEST_CASE("signal thread: it says what came, and its end takes none for it", "[sync]") {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGUSR1}) sigaddset(&signals, signal);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &signals, nullptr) == 0);
  BoundedQueue<int> seen(4);

  {
    const SignalThread thread(signals, [&](int signal) { seen.Push(signal); });
    kill(getpid(), SIGTERM);
    CHECK(seen.Pop() == SIGTERM);
  }

  seen.Close();
  CHECK(seen.Pop() == std::nullopt);
}

TEST_CASE("signal thread: a SIGUSR1 of somebody else does not deafen it", "[sync]") {
  const sigset_t signals = BlockStopSignals();
  BoundedQueue<int> seen(4);
  const SignalThread thread(signals, [&](int signal) { seen.Push(signal); });

  kill(getpid(), SIGUSR1);
  kill(getpid(), SIGTERM);

  CHECK(seen.Pop(absl::Seconds(20)) == SIGTERM);
}

TEST_CASE("stop signals: SIGHUP is one of them unless it was ignored from the start", "[sync]") {
  const sigset_t heard = StopSignals();
  CHECK(sigismember(&heard, SIGHUP) == 1);
  CHECK(sigismember(&heard, SIGTERM) == 1);
  CHECK(sigismember(&heard, SIGINT) == 1);

  signal(SIGHUP, SIG_IGN);
  const sigset_t under_nohup = StopSignals();
  signal(SIGHUP, SIG_DFL);

  CHECK(sigismember(&under_nohup, SIGHUP) == 0);
  CHECK(sigismember(&under_nohup, SIGTERM) == 1);
}

TEST_CASE("mutex: increments of several threads are all counted", "[sync]") {
  Mutex mutex;
  int count = 0;

  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (auto& thread : threads) thread.join();

  CHECK(count == 4000);
}

TEST_CASE("condition variable: a wait that nobody signals ends with the time-out", "[sync]") {
  Mutex mutex;
  CondVar never;

  MutexLock lock(&mutex);
  bool timed_out = false;
  while (!timed_out) timed_out = never.WaitWithTimeout(&mutex, absl::Milliseconds(1));

  CHECK(timed_out);
}

TEST_CASE("queue: values come out in order, across threads", "[sync]") {
  BoundedQueue<int> queue(3);
  std::thread producer([&] {
    for (int i = 0; i < 100; ++i) queue.Push(i);
    queue.Close();
  });

  std::vector<int> seen;
  while (auto value = queue.Pop()) seen.push_back(*value);
  producer.join();

  REQUIRE(seen.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(seen[i] == i);
}

TEST_CASE("queue: it refuses what exceeds its limit and what comes after Close", "[sync]") {
  BoundedQueue<int> queue(2);

  CHECK(queue.TryPush(1));
  CHECK(queue.TryPush(2));
  CHECK_FALSE(queue.TryPush(3));
  queue.Close();

  CHECK(queue.Pop() == 1);
  CHECK_FALSE(queue.TryPush(4));
  CHECK_FALSE(queue.Push(5));
  CHECK(queue.Pop() == 2);
  CHECK_FALSE(queue.Pop().has_value());
}

TEST_CASE("queue: an empty queue is left after the time-out", "[sync]") {
  BoundedQueue<int> queue(2);
  CHECK_FALSE(queue.Pop(absl::ZeroDuration()).has_value());
  CHECK_FALSE(queue.Pop(absl::Milliseconds(1)).has_value());
}

TEST_CASE("executor: it does everything in order before it ends, and nothing afterwards", "[sync]") {
  std::vector<int> done;
  SerialExecutor executor("test", 4);
  for (int i = 0; i < 50; ++i) executor.Post([&done, i] { done.push_back(i); });
  executor.Finish();

  REQUIRE(done.size() == 50);
  for (int i = 0; i < 50; ++i) CHECK(done[i] == i);
  CHECK_FALSE(executor.Post([&done] { done.clear(); }));
}

TEST_CASE("pulse: progress adds up, and waiting ends with the last who waits", "[sync]") {
  Pulse pulse;
  AdvancePulse(&pulse, 5);
  AdvancePulse(nullptr, 5);
  pulse.Advance();
  CHECK(pulse.progress() == 6);

  {
    const Pulse::Waiting outer(&pulse);
    const Pulse::Waiting nobody(nullptr);
    { const Pulse::Waiting inner(&pulse); }
    CHECK(pulse.waits_for_peer());
  }
  CHECK_FALSE(pulse.waits_for_peer());
}

}  // namespace
}  // namespace lockstep
